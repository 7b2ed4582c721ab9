// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/packing.hpp>

#include <algorithm>

namespace quarry {

void join_ranges(packed_region& packed) {
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

packed_region pack_one(const region_tree& tree, const region_tree::node_type& node) {
  packed_region packed;
  packed.live_bytes = node.it->pool.statistics().live_bytes;
  for (const auto [first, count] : node.it->held)
    node.it->pool.for_each_used(
        {static_cast<slab_number>(first), static_cast<slab_number>(count)}, [&](slab_run run) {
          std::byte* at = tree.table().address(run.first);
          const std::size_t size = std::size_t{run.count} * region_tree::geometry.slab;
          packed.packed_bytes += size;
          if (!packed.ranges.empty() &&
              packed.ranges.back().address + packed.ranges.back().size == at)
            packed.ranges.back().size += size;
          else
            packed.ranges.push_back({at, size});
        });
  return packed;
}

region_result<packed_region> pack(const region_tree& tree, region_id id) {
  auto* top = tree.find(id);
  if (top == nullptr) return region_status::stale_region;
  packed_region all;
  tree.for_each_below(*top, [&](region_tree::node_type& node) {
    const packed_region one = pack_one(tree, node);
    all.live_bytes += one.live_bytes;
    all.ranges.insert(all.ranges.end(), one.ranges.begin(), one.ranges.end());
  });
  join_ranges(all);  // the ranges of different regions interleave
  return all;
}

}  // namespace quarry
