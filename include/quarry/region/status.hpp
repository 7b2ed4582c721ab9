// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a region call answers. Nothing a caller passes corrupts or stops the allocator: a call that
/// can not be carried out changes nothing and says why.

#include <cstdint>
#include <utility>

namespace quarry {

enum class region_status : std::uint8_t {
  ok,
  out_of_memory,   // no run of slabs is long enough, or none of the metadata's memory is left
  too_large,       // more than the whole address range
  zero_size,       // an object has at least one byte
  bad_alignment,   // not a power of two, or larger than a page
  not_ours,        // the address lies outside the range, or in no object's slab
  not_an_object,   // the address lies in a slab, but no object starts there, or it is free already
  stale_region,    // the region was freed, or never was
  is_root,         // the root lives as long as the tree
  too_many,        // no number is left for another region
  mismatch,        // of a transfer: the two sides name different regions or objects
  no_such_worker,  // of a transfer: the peer's number is too large, or the caller's own
  no_region,       // the handle owns no region: it was moved from, released or handed over
};

constexpr const char* to_text(region_status s) {
  switch (s) {
    case region_status::ok: return "ok";
    case region_status::out_of_memory: return "out of memory";
    case region_status::too_large: return "larger than the whole address range";
    case region_status::zero_size: return "an object of no bytes";
    case region_status::bad_alignment: return "not a power of two up to the page size";
    case region_status::not_ours: return "the address belongs to no object of these regions";
    case region_status::not_an_object:
      return "no living object starts at the address (freed already, or inside another)";
    case region_status::stale_region: return "the region was freed, or never was";
    case region_status::is_root: return "the root region can not be freed";
    case region_status::too_many: return "too many regions at a time";
    case region_status::mismatch: return "sender and receiver name different regions or objects";
    case region_status::no_region:
      return "the handle owns no region (it was moved from, released or handed over)";
    case region_status::no_such_worker: return "the peer is no other worker";
  }
  return "unknown";
}

/// A value, or why there is none.
template <class T>
struct region_result {
  region_status status = region_status::ok;
  T value{};
  region_result(T v) : value(std::move(v)) {}
  region_result(region_status s) : status(s) {}
  explicit operator bool() const { return status == region_status::ok; }
  T operator*() const { return value; }
};

}  // namespace quarry
