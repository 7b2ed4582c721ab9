// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Packing: the addresses that hold a region, for a transfer or a checkpoint.
///
///   slabs    | full | part | empty | full | free | full |
///   ranges   [-------------]       [------]      [------]     (address, size), in order
///
/// A region and its descendants become an ordered list of ranges: every slab that holds a part of a
/// living object, neighbours joined, whichever region they belong to. Whole slabs are packed, so some
/// bytes that no object uses go along: packed / live says how many.
/// Cost: one look at each slab of the regions, none at the objects.

#include <quarry/region/region_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace quarry {

struct packed_range {
  std::byte* address = nullptr;
  std::size_t size = 0;
  friend bool operator==(const packed_range&, const packed_range&) = default;
};

struct packed_region {
  std::vector<packed_range> ranges;  // by address, none touches another
  std::uint64_t packed_bytes = 0;    // the sum of their sizes
  std::uint64_t live_bytes = 0;      // slots of living objects
  double bytes_per_live_byte() const {
    return live_bytes == 0 ? 0
                           : static_cast<double>(packed_bytes) / static_cast<double>(live_bytes);
  }
  double ranges_per_mib() const {
    return packed_bytes == 0
               ? 0
               : static_cast<double>(ranges.size()) * (1 << 20) / static_cast<double>(packed_bytes);
  }
};

/// Brings the ranges into order and joins those that touch or overlap.
inline void join_ranges(packed_region& packed) {
  std::vector<packed_range> all;
  all.swap(packed.ranges);
  std::sort(all.begin(), all.end(),
            [](const packed_range& a, const packed_range& b) { return a.address < b.address; });
  packed.packed_bytes = 0;
  for (const packed_range& range : all) {
    if (packed.ranges.empty() ||
        packed.ranges.back().address + packed.ranges.back().size < range.address) {
      packed.ranges.push_back(range);
    } else {
      packed_range& last = packed.ranges.back();
      last.size = static_cast<std::size_t>(
          std::max(last.address + last.size, range.address + range.size) - last.address);
    }
  }
  for (const packed_range& range : packed.ranges) packed.packed_bytes += range.size;
}

/// One region without its descendants.
template <slab_geometry Geometry>
packed_region pack_one(const basic_region_tree<Geometry>& tree, const region_node<Geometry>& node) {
  packed_region packed;
  packed.live_bytes = node.it->pool.statistics().live_bytes;
  for (const auto [first, count] : node.it->held)
    node.it->pool.for_each_used(
        {static_cast<slab_number>(first), static_cast<slab_number>(count)}, [&](slab_run run) {
          std::byte* at = tree.table().address(run.first);
          const std::size_t size = std::size_t{run.count} * Geometry.slab;
          packed.packed_bytes += size;
          if (!packed.ranges.empty() &&
              packed.ranges.back().address + packed.ranges.back().size == at)
            packed.ranges.back().size += size;
          else
            packed.ranges.push_back({at, size});
        });
  return packed;
}

/// Requires: no thread changes the regions meanwhile.
template <slab_geometry Geometry>
region_result<packed_region> pack(const basic_region_tree<Geometry>& tree, region_id id) {
  auto* top = tree.find(id);
  if (top == nullptr) return region_status::stale_region;
  packed_region all;
  tree.for_each_below(*top, [&](region_node<Geometry>& node) {
    const packed_region one = pack_one(tree, node);
    all.live_bytes += one.live_bytes;
    all.ranges.insert(all.ranges.end(), one.ranges.begin(), one.ranges.end());
  });
  join_ranges(all);  // each region's are in order; the regions lie between each other
  return all;
}

}  // namespace quarry
