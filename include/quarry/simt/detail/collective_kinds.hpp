// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The collectives of the CPU backend: for each, the computation that the last lane to arrive does
/// on behalf of all lanes.

#include <quarry/simt/bits.hpp>
#include <quarry/simt/detail/executor_interface.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace quarry::simt::detail {

/// Effects: executes a collective. A host thread outside kernels is a warp of one lane.
inline collective_result run_collective(const collective_kind& kind, lane_mask mask,
                                        std::uint64_t value, std::uint32_t source = 0) {
  executor_interface* e = executor_interface::current();
  if (e == nullptr) {
    lane_operand lone{.value = value};
    kind.finish(&lone, 1);
    return {lone.result, lone.second_result};
  }
  tsan_ignore guard;
  return e->run_collective(kind, mask, value, source);
}

/// The bits of a 4-byte or 8-byte value, zero-extended.
template <class T>
constexpr std::uint64_t pack(T v) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<std::uint64_t>(v);
  } else {
    return std::bit_cast<std::uint32_t>(v);
  }
}
template <class T>
constexpr T unpack(std::uint64_t v) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(v);
  } else {
    return std::bit_cast<T>(static_cast<std::uint32_t>(v));
  }
}

template <class T, class Combine>
void reduce_lanes(lane_operand* lanes, lane_mask present, Combine combine) {
  T sum = unpack<T>(lanes[lowest_bit(present)].value);
  for_each_lane(present & (present - 1),
                [&](unsigned i) { sum = combine(sum, unpack<T>(lanes[i].value)); });
  for_each_lane(present, [&](unsigned i) { lanes[i].result = pack(sum); });
}

inline constexpr collective_kind sync_kind{"sync_warp", [](lane_operand*, lane_mask) {}};
inline constexpr collective_kind ballot_kind{
    "ballot", [](lane_operand* lanes, lane_mask present) {
      lane_mask votes = 0;
      for_each_lane(present, [&](unsigned i) {
        if (lanes[i].value != 0) votes |= lane_mask{1} << i;
      });
      for_each_lane(present, [&](unsigned i) { lanes[i].result = votes; });
    }};
inline constexpr collective_kind shuffle_kind{
    "shuffle", [](lane_operand* lanes, lane_mask present) {
      for_each_lane(
          present, [&](unsigned i) { lanes[i].result = lanes[lanes[i].source % warp_size].value; });
    }};
inline constexpr collective_kind match_kind{
    "match_any", [](lane_operand* lanes, lane_mask present) {
      for (lane_mask left = present; left != 0;) {
        const std::uint64_t value = lanes[lowest_bit(left)].value;
        lane_mask equal = 0;
        for_each_lane(left, [&](unsigned i) {
          if (lanes[i].value == value) equal |= lane_mask{1} << i;
        });
        for_each_lane(equal, [&](unsigned i) { lanes[i].result = equal; });
        left &= ~equal;
      }
    }};
template <class T>
inline constexpr collective_kind add_kind{
    "reduce_add", [](lane_operand* lanes, lane_mask present) {
      using word = std::make_unsigned_t<T>;
      reduce_lanes<word>(lanes, present, [](word a, word b) { return static_cast<word>(a + b); });
    }};
template <class T>
inline constexpr collective_kind min_kind{"reduce_min", [](lane_operand* lanes, lane_mask present) {
                                            reduce_lanes<T>(lanes, present,
                                                            [](T a, T b) { return b < a ? b : a; });
                                          }};
template <class T>
inline constexpr collective_kind max_kind{"reduce_max", [](lane_operand* lanes, lane_mask present) {
                                            reduce_lanes<T>(lanes, present,
                                                            [](T a, T b) { return a < b ? b : a; });
                                          }};
inline constexpr collective_kind and_kind{
    "reduce_and", [](lane_operand* lanes, lane_mask present) {
      reduce_lanes<std::uint64_t>(lanes, present, [](auto a, auto b) { return a & b; });
    }};
inline constexpr collective_kind or_kind{
    "reduce_or", [](lane_operand* lanes, lane_mask present) {
      reduce_lanes<std::uint64_t>(lanes, present, [](auto a, auto b) { return a | b; });
    }};
inline constexpr collective_kind xor_kind{
    "reduce_xor", [](lane_operand* lanes, lane_mask present) {
      reduce_lanes<std::uint64_t>(lanes, present, [](auto a, auto b) { return a ^ b; });
    }};
inline constexpr collective_kind scan_kind{
    "scan_add", [](lane_operand* lanes, lane_mask present) {
      std::uint64_t sum = 0;
      for_each_lane(present, [&](unsigned i) {
        lanes[i].result = sum;
        sum += lanes[i].value;
      });
      for_each_lane(present, [&](unsigned i) { lanes[i].second_result = sum; });
    }};

}  // namespace quarry::simt::detail
