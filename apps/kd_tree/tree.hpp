// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_tree: a complete tree on the host, in canonical form.
///
///   nodes        in preorder: the left child of node i is node i + 1
///   references   the triangles of the leaves, in the order of the leaves, ascending per leaf
///
/// Equal trees have equal arrays.

#include "apps/kd_tree/rules.hpp"

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::apps {

/// Returns the size of the allocation for n triangle numbers: a multiple of 16 bytes, as in Vinkler
/// and Havran (2014).
QUARRY_DEVICE constexpr std::uint64_t kd_list_bytes(std::uint64_t n) {
  return align_up(n * sizeof(std::uint32_t), block_alignment);
}

struct kd_tree_node {
  kd_box box;
  std::uint32_t count =
      0;  // triangles; those of a leaf are references[first ... first + count - 1]
  std::uint32_t first = 0;
  std::uint32_t right = 0;  // right child; 0: a leaf
  std::uint32_t plane = 0;
  std::uint8_t axis = 3;
  std::uint8_t depth = 0;

  bool leaf() const { return right == 0; }
  bool operator==(const kd_tree_node&) const = default;
};

struct kd_tree {
  std::vector<kd_tree_node> nodes;
  std::vector<std::uint32_t> references;
};

/// Returns a description of the first difference of two trees; empty if they are equal.
inline std::string first_difference(const kd_tree& a, const kd_tree& b) {
  const auto text = [](const kd_tree_node& n) {
    std::string s =
        n.leaf() ? "a leaf"
                 : "split at " + std::to_string(n.plane) + " across axis " + std::to_string(n.axis);
    return s + " with " + std::to_string(n.count) + " triangles";
  };
  for (std::size_t i = 0; i < a.nodes.size() && i < b.nodes.size(); ++i) {
    const kd_tree_node &m = a.nodes[i], &n = b.nodes[i];
    if (m.box != n.box || m.count != n.count || m.plane != n.plane || m.axis != n.axis ||
        m.depth != n.depth || m.leaf() != n.leaf())
      return "node " + std::to_string(i) + ", " + std::to_string(m.depth) + " deep: " + text(m) +
             ", and " + text(n);
    if (!m.leaf()) continue;
    for (std::uint32_t k = 0; k < m.count; ++k)
      if (a.references[m.first + k] != b.references[n.first + k])
        return "the leaf at node " + std::to_string(i) + " has triangle " +
               std::to_string(a.references[m.first + k]) + ", and " +
               std::to_string(b.references[n.first + k]);
  }
  if (a.nodes.size() == b.nodes.size()) return {};
  return std::to_string(a.nodes.size()) + " nodes, and " + std::to_string(b.nodes.size());
}

/// Statistics of a tree, among them the columns of Table 2 of Vinkler and Havran (2014). A node
/// with triangles is one allocation; a split node is one deallocation.
struct kd_statistics {
  std::uint64_t nodes = 0;
  std::uint64_t leaves = 0;
  std::uint64_t references = 0;  // from leaves to triangles
  std::uint64_t depth = 0;
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;   // total size of all allocations
  double mean = 0;           // mean allocation size, bytes
  double deviation = 0;      // standard deviation of the allocation size, bytes
  std::uint64_t digest = 0;  // hash of the tree
};

inline kd_statistics statistics_of(const kd_tree& tree) {
  kd_statistics f;
  f.digest = 0xcbf29ce484222325u;  // FNV-1a (Fowler, Noll, Vo 1991), word by word
  const auto mix = [&](std::uint64_t word) {
    f.digest = (f.digest ^ word) * 0x100000001b3u, f.digest ^= f.digest >> 29;
  };
  f.nodes = tree.nodes.size();
  double squares = 0;
  for (const kd_tree_node& n : tree.nodes) {
    for (unsigned axis = 0; axis < 3; ++axis) mix(n.box.lower(axis)), mix(n.box.upper(axis));
    mix(n.count), mix(n.right), mix(n.plane), mix(n.axis);
    f.depth = std::max<std::uint64_t>(f.depth, n.depth);
    if (n.leaf()) ++f.leaves, f.references += n.count;
    if (n.count == 0) continue;
    const std::uint64_t size = kd_list_bytes(n.count);
    ++f.allocations;
    f.bytes += size;
    squares += static_cast<double>(size) * static_cast<double>(size);
  }
  for (const std::uint32_t r : tree.references) mix(r);
  if (f.allocations == 0) return f;
  const auto count = static_cast<double>(f.allocations);
  f.mean = static_cast<double>(f.bytes) / count;
  f.deviation = std::sqrt(std::max(0.0, squares / count - f.mean * f.mean));
  return f;
}

}  // namespace quarry::apps
