// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the lanes of a warp do together. Every operation names its lanes; nothing assumes that a warp
/// runs in step.
///
/// active_mask() answers "who else is here right now?": the lanes of the result, and only they, may then
/// meet in masked operations. It promises nothing about who is in it but the caller.
/// Ordering: sync_warp and sync_block order memory between lanes; ballot, shuffle and the rest do not.

#include <quarry/simt/bits.hpp>
#include <quarry/simt/ids.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace quarry::simt {

/// Lanes that call this at the same place at the same time, the caller among them.
#if QUARRY_DEVICE_CODE
QUARRY_DEVICE inline lane_mask active_mask() { return __activemask(); }
#else
QUARRY_DEVICE inline lane_mask active_mask(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE()) {
  return exec::ask([&](exec::executor& e) { return e.find_company(file, line); }, 1);
}
#endif

/// This lane waits for something another lane must do; on a GPU for about so many nanoseconds. Where many wait for the
/// same word, short pauses keep those from memory who have to change it.
QUARRY_DEVICE inline void spin([[maybe_unused]] unsigned pause = 32) {
#if QUARRY_DEVICE_CODE
  __nanosleep(pause);
#else
  exec::ask([](exec::executor& e) { return e.spin(), 0; }, 0);
#endif
}

// ---- the CPU side: what the last lane to arrive does for all ------------------------------------

namespace exec {

struct answer {
  std::uint64_t first;
  std::uint64_t second;
};

inline answer meet(const collective_kind& kind, lane_mask mask, std::uint64_t value,
                   std::uint32_t source = 0) {
  executor* e = executor::here();
  if (e == nullptr) {  // a host thread: a warp of one
    lane alone;
    alone.value = value;
    kind.finish(&alone, 1);
    return {alone.result, alone.second_result};
  }
  unseen guard;
  const std::uint64_t first = e->meet(kind, mask, value, source);
  return {first, e->current().second_result};
}

template <class T>
constexpr std::uint64_t pack(T v) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<std::uint64_t>(v);
  } else {
    return std::bit_cast<std::uint32_t>(v);
  }
}
template <class T>
constexpr T unpack(std::uint64_t v) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(v);
  } else {
    return std::bit_cast<T>(static_cast<std::uint32_t>(v));
  }
}

template <class T, class Combine>
void reduce_lanes(lane* lanes, lane_mask present, Combine combine) {
  T sum = unpack<T>(lanes[lowest_bit(present)].value);
  for_each_lane(present & (present - 1),
                [&](unsigned i) { sum = combine(sum, unpack<T>(lanes[i].value)); });
  for_each_lane(present, [&](unsigned i) { lanes[i].result = pack(sum); });
}

inline constexpr collective_kind sync_kind{"sync_warp", [](lane*, lane_mask) {}};
inline constexpr collective_kind ballot_kind{
    "ballot", [](lane* lanes, lane_mask present) {
      lane_mask votes = 0;
      for_each_lane(present, [&](unsigned i) {
        if (lanes[i].value != 0) votes |= lane_mask{1} << i;
      });
      for_each_lane(present, [&](unsigned i) { lanes[i].result = votes; });
    }};
inline constexpr collective_kind shuffle_kind{
    "shuffle", [](lane* lanes, lane_mask present) {
      for_each_lane(
          present, [&](unsigned i) { lanes[i].result = lanes[lanes[i].source % warp_size].value; });
    }};
inline constexpr collective_kind match_kind{
    "match_any", [](lane* lanes, lane_mask present) {
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
    "reduce_add", [](lane* lanes, lane_mask present) {
      using word = std::make_unsigned_t<T>;
      reduce_lanes<word>(lanes, present, [](word a, word b) { return static_cast<word>(a + b); });
    }};
template <class T>
inline constexpr collective_kind min_kind{"reduce_min", [](lane* lanes, lane_mask present) {
                                            reduce_lanes<T>(lanes, present,
                                                            [](T a, T b) { return b < a ? b : a; });
                                          }};
template <class T>
inline constexpr collective_kind max_kind{"reduce_max", [](lane* lanes, lane_mask present) {
                                            reduce_lanes<T>(lanes, present,
                                                            [](T a, T b) { return a < b ? b : a; });
                                          }};
inline constexpr collective_kind and_kind{
    "reduce_and", [](lane* lanes, lane_mask present) {
      reduce_lanes<std::uint64_t>(lanes, present, [](auto a, auto b) { return a & b; });
    }};
inline constexpr collective_kind or_kind{
    "reduce_or", [](lane* lanes, lane_mask present) {
      reduce_lanes<std::uint64_t>(lanes, present, [](auto a, auto b) { return a | b; });
    }};
inline constexpr collective_kind xor_kind{
    "reduce_xor", [](lane* lanes, lane_mask present) {
      reduce_lanes<std::uint64_t>(lanes, present, [](auto a, auto b) { return a ^ b; });
    }};
inline constexpr collective_kind scan_kind{
    "scan_add", [](lane* lanes, lane_mask present) {
      std::uint64_t sum = 0;
      for_each_lane(present, [&](unsigned i) {
        lanes[i].result = sum;
        sum += lanes[i].value;
      });
      for_each_lane(present, [&](unsigned i) { lanes[i].second_result = sum; });
    }};

}  // namespace exec

// ---- votes, shuffles, matches -------------------------------------------------------------------

template <class T>
concept lane_value = std::is_trivially_copyable_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

QUARRY_DEVICE inline lane_mask ballot([[maybe_unused]] lane_mask mask, bool vote) {
#if QUARRY_DEVICE_CODE
  return __ballot_sync(mask, vote);
#else
  return static_cast<lane_mask>(exec::meet(exec::ballot_kind, mask, vote).first);
#endif
}
QUARRY_DEVICE inline bool any(lane_mask mask, bool vote) {
#if QUARRY_DEVICE_CODE
  return __any_sync(mask, vote);
#else
  return ballot(mask, vote) != 0;
#endif
}
QUARRY_DEVICE inline bool all(lane_mask mask, bool vote) {
#if QUARRY_DEVICE_CODE
  return __all_sync(mask, vote);
#else
  return ballot(mask, !vote) == 0;
#endif
}

/// The value that lane `source` brings; `source` must be in the mask.
template <lane_value T>
QUARRY_DEVICE T shuffle(lane_mask mask, T value, unsigned source) {
#if QUARRY_DEVICE_CODE
  if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(T, __shfl_sync(mask, __builtin_bit_cast(unsigned long long, value),
                                             static_cast<int>(source)));
  } else {
    return __builtin_bit_cast(
        T, __shfl_sync(mask, __builtin_bit_cast(unsigned, value), static_cast<int>(source)));
  }
#else
  return exec::unpack<T>(exec::meet(exec::shuffle_kind, mask, exec::pack(value), source).first);
#endif
}

/// The lanes of the mask that bring the same value.
template <lane_value T>
QUARRY_DEVICE lane_mask match_any(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
  if constexpr (sizeof(T) == 8) {
    return __match_any_sync(mask, __builtin_bit_cast(unsigned long long, value));
  } else {
    return __match_any_sync(mask, __builtin_bit_cast(unsigned, value));
  }
#else
  return static_cast<lane_mask>(exec::meet(exec::match_kind, mask, exec::pack(value)).first);
#endif
}

// ---- order --------------------------------------------------------------------------------------

/// What the lanes of the mask wrote before is visible to all of them after.
QUARRY_DEVICE inline void sync_warp(lane_mask mask) {
#if QUARRY_DEVICE_CODE
  __syncwarp(mask);
#else
  if (exec::executor* e = exec::executor::here()) {
    exec::unseen guard;
    exec::warp* here = e->current().home;
    exec::publish(here);
    e->meet(exec::sync_kind, mask, 0, 0);
    exec::join(here);
  }
#endif
}

/// All lanes of the block that are not gone.
QUARRY_DEVICE inline void sync_block() {
#if QUARRY_DEVICE_CODE
  __syncthreads();
#else
  exec::ask([](exec::executor& e) { return e.block_barrier(), 0; }, 0);
#endif
}

}  // namespace quarry::simt

#include <quarry/simt/reduce.hpp>
