// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_id: which region, and which life of it. 64 bits: a number below 2^22, and a generation
/// that grows by one whenever the number is used again, so that an id of a freed region is
/// recognised for ever. The root is 0.

#include <quarry/region/detail/slab_table.hpp>

#include <cstdint>

namespace quarry {

class region_id {
 public:
  constexpr region_id() = default;
  constexpr explicit region_id(std::uint64_t value) : value_(value) {}
  constexpr region_id(std::uint64_t generation, std::uint32_t number)
      : value_(generation << stamp_bits | number) {}

  constexpr std::uint64_t value() const { return value_; }
  constexpr std::uint32_t number() const {
    return static_cast<std::uint32_t>(value_) & ((1u << stamp_bits) - 1);
  }
  constexpr std::uint64_t generation() const { return value_ >> stamp_bits; }
  friend constexpr bool operator==(region_id, region_id) = default;

 private:
  std::uint64_t value_ = 0;
};

inline constexpr region_id root_region{};
/// An id that no region ever has.
inline constexpr region_id null_region{1, 0};

}  // namespace quarry
