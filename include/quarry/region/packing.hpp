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

/// Sorts the ranges by address and joins those that touch or overlap.
void join_ranges(packed_region& packed);

/// Returns the ranges of one region without its descendants.
/// Requires: no thread changes the region during the call.
packed_region pack_one(const region_tree& tree, const region_tree::node_type& node);

/// Returns the ranges of a region and its descendants, or stale_region.
/// Requires: no thread changes the regions during the call.
region_result<packed_region> pack(const region_tree& tree, region_id id);

}  // namespace quarry
