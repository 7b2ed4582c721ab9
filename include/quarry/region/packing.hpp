// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Packing: the address ranges that cover the live objects of a region, for a transfer or a
/// checkpoint.
///
///   slabs    | full | part | empty | full | free | full |
///   ranges   [-------------]       [------]      [------]     (address, size), in address order
///
/// The ranges cover every slab that holds a part of a live object of the region or of a descendant.
/// Adjacent slabs are joined, also across regions. Ranges consist of whole slabs and so contain
/// unused bytes; packed_bytes / live_bytes is the overhead.
/// Complexity: linear in the number of slabs of the regions; objects are not visited.

#include <quarry/region/tree.hpp>

#include <cstddef>
#include <vector>

namespace quarry {

struct packed_range {
  std::byte* address = nullptr;
  std::size_t size = 0;
  friend bool operator==(const packed_range&, const packed_range&) = default;
};

struct packed_region {
  std::vector<packed_range> ranges;  // in address order, not adjacent
  std::uint64_t packed_bytes = 0;    // sum of the sizes of the ranges
  std::uint64_t live_bytes = 0;      // slots of live objects
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

/// Sorts the ranges by address and joins those that touch or overlap.
void join_ranges(packed_region& packed);

/// Returns the ranges of one region without its descendants.
/// Requires: no thread changes the region during the call.
packed_region pack_one(const region_tree& tree, const region_tree::node_type& node);

/// Returns the ranges of a region and its descendants, or stale_region.
/// Requires: no thread changes the regions during the call.
region_result<packed_region> pack(const region_tree& tree, region_id id);

}  // namespace quarry
