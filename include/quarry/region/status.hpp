// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_status: the result of a call on regions. A call that fails has no effect, and no argument
/// corrupts the allocator.

#include <quarry/core/config.hpp>
#include <quarry/core/error.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace quarry {

enum class region_status : std::uint8_t {
  ok,
  out_of_memory,      // no run of slabs is long enough, or the metadata is full
  too_large,          // more than the whole address range
  zero_size,          // an object has at least one byte
  bad_alignment,      // not a power of two, or larger than a page
  not_ours,           // the address lies outside the range, or in a slab without objects
  not_an_object,      // no live object starts at the address
  stale_region,       // the region was destroyed, or never existed
  is_root,            // the root exists as long as the tree
  too_many,           // all region numbers are in use
  mismatch,           // transfer: the two workers name different regions or objects
  no_such_worker,     // transfer: the peer's number is too large, or the caller's own
  no_region,          // the handle owns no region: it was moved from, released or handed over
  malformed_message,  // a message between nodes of a cluster could not be decoded
};
inline constexpr std::uint64_t last_region_status =
    static_cast<std::uint64_t>(region_status::malformed_message);

constexpr const char* to_text(region_status s) {
  switch (s) {
    case region_status::ok: return "ok";
    case region_status::out_of_memory: return "out of memory";
    case region_status::too_large: return "larger than the whole address range";
    case region_status::zero_size: return "the size is 0";
    case region_status::bad_alignment:
      return "the alignment is not a power of two up to the page size";
    case region_status::not_ours: return "the address belongs to no object of these regions";
    case region_status::not_an_object:
      return "no live object starts at the address (it was freed, or lies inside an object)";
    case region_status::stale_region: return "the region was destroyed, or never existed";
    case region_status::is_root: return "the root region cannot be destroyed";
    case region_status::too_many: return "all region numbers are in use";
    case region_status::mismatch: return "sender and receiver name different regions or objects";
    case region_status::no_region:
      return "the handle owns no region (it was moved from, released or handed over)";
    case region_status::no_such_worker: return "the peer is no other worker";
    case region_status::malformed_message: return "a message between nodes could not be decoded";
  }
  return "unknown";
}

/// A call on a region failed: the region was destroyed, or an argument is invalid.
class region_error : public error {
 public:
  region_error(const std::string& what, region_status status)
      : error(what + ": " + to_text(status)), status_(status) {}
  region_status status() const { return status_; }

 private:
  region_status status_;
};

/// A value, or the status of the failed call. Reading the value of a failed call throws
/// region_error: an id of 0 would be the root, and the program would continue in the wrong region.
template <class T>
class [[nodiscard]] region_result {
 public:
  region_result(T v) : value_(std::move(v)) {}
  region_result(region_status s) : status(s) {}
  explicit operator bool() const { return status == region_status::ok; }

  const T& value() const& { return checked(), value_; }
  T&& value() && { return checked(), std::move(value_); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }

  region_status status = region_status::ok;

 private:
  void checked() const {
    if (status != region_status::ok) [[unlikely]]
      fail();
  }
  [[noreturn]] QUARRY_NOINLINE void fail() const {
    throw region_error("the call has no value", status);
  }
  T value_{};
};

}  // namespace quarry
