// SPDX-License-Identifier: Apache-2.0
/// Collectives on both backends: every operation is compared with a loop over the lanes.

#include <quarry/simt/simt.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quarry::simt::collective_test {
namespace {

using here = default_backend;

/// The results of one lane.
struct seen {
  std::uint32_t group, ballot, match, any, all;
  std::uint32_t shuffled, add, min, max, band, bor, bxor, before, total;
  std::int32_t least;
  std::uint64_t wide_shuffled, wide_add, wide_min, wide_max, wide_or, wide_before, wide_total;
};

/// Values of lanes, some of which are equal.
QUARRY_DEVICE inline std::uint32_t value_of(std::uint32_t lane) {
  return scramble(lane) % 11 * 0x01010101u;
}
QUARRY_DEVICE inline std::uint64_t wide_value_of(std::uint32_t lane) {
  return std::uint64_t{scramble(lane + 77)} << 20 | scramble(lane);
}
QUARRY_DEVICE inline std::int32_t signed_value_of(std::uint32_t lane) {
  return static_cast<std::int32_t>(scramble(lane)) >> 8;
}

/// The lanes of `chosen` execute every collective; the source of a shuffle is the adjacent lane.
struct use_all {
  std::uint32_t chosen;
  seen* out;
  QUARRY_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    if ((chosen >> lane & 1) == 0) return;
    const std::uint32_t v = value_of(lane);
    const std::uint64_t w = wide_value_of(lane);
    const unsigned source = highest_bit(chosen);
    seen s{};
    s.group = chosen;
    s.ballot = ballot(chosen, v % 2 == 0);
    s.any = any(chosen, lane == source);
    s.all = all(chosen, v % 2 == 0);
    s.match = match_any(chosen, v);
    s.shuffled = shuffle(chosen, v, source);
    s.add = reduce_add(chosen, v);
    s.min = reduce_min(chosen, v);
    s.max = reduce_max(chosen, v);
    s.least = reduce_min(chosen, signed_value_of(lane));
    s.band = reduce_and(chosen, v);
    s.bor = reduce_or(chosen, v);
    s.bxor = reduce_xor(chosen, v);
    const auto sum = scan_add(chosen, v);
    s.before = sum.before;
    s.total = sum.total;
    s.wide_shuffled = shuffle(chosen, w, source);
    s.wide_add = reduce_add(chosen, w);
    s.wide_min = reduce_min(chosen, w);
    s.wide_max = reduce_max(chosen, w);
    s.wide_or = reduce_or(chosen, w);
    const auto wide = scan_add(chosen, w);
    s.wide_before = wide.before;
    s.wide_total = wide.total;
    sync_warp(chosen);
    out[lane] = s;
  }
};

void expect_right(std::uint32_t chosen, const std::vector<seen>& got) {
  std::vector<unsigned> in;
  for (unsigned i = 0; i < 32; ++i)
    if (chosen >> i & 1) in.push_back(i);
  seen want{};
  want.band = ~0u;
  want.min = ~0u;
  want.least = INT32_MAX;
  want.wide_min = ~std::uint64_t{0};
  for (unsigned i : in) {
    const std::uint32_t v = value_of(i);
    const std::uint64_t w = wide_value_of(i);
    if (v % 2 == 0) want.ballot |= 1u << i;
    want.add += v;
    want.min = std::min(want.min, v);
    want.max = std::max(want.max, v);
    want.least = std::min(want.least, signed_value_of(i));
    want.band &= v;
    want.bor |= v;
    want.bxor ^= v;
    want.wide_add += w;
    want.wide_min = std::min(want.wide_min, w);
    want.wide_max = std::max(want.wide_max, w);
    want.wide_or |= w;
  }
  std::uint32_t before = 0;
  std::uint64_t wide_before = 0;
  for (unsigned i : in) {
    const seen& s = got[i];
    std::uint32_t equal = 0;
    for (unsigned k : in)
      if (value_of(k) == value_of(i)) equal |= 1u << k;
    EXPECT_EQ(s.group, chosen);
    EXPECT_EQ(s.ballot, want.ballot);
    EXPECT_EQ(s.any, 1u);
    EXPECT_EQ(s.all, want.ballot == chosen ? 1u : 0u);
    EXPECT_EQ(s.match, equal);
    EXPECT_EQ(s.shuffled, value_of(in.back()));
    EXPECT_EQ(s.add, want.add);
    EXPECT_EQ(s.min, want.min);
    EXPECT_EQ(s.max, want.max);
    EXPECT_EQ(s.least, want.least);
    EXPECT_EQ(s.band, want.band);
    EXPECT_EQ(s.bor, want.bor);
    EXPECT_EQ(s.bxor, want.bxor);
    EXPECT_EQ(s.before, before);
    EXPECT_EQ(s.total, want.add);
    EXPECT_EQ(s.wide_shuffled, wide_value_of(in.back()));
    EXPECT_EQ(s.wide_add, want.wide_add);
    EXPECT_EQ(s.wide_min, want.wide_min);
    EXPECT_EQ(s.wide_max, want.wide_max);
    EXPECT_EQ(s.wide_or, want.wide_or);
    EXPECT_EQ(s.wide_before, wide_before);
    EXPECT_EQ(s.wide_total, want.wide_add);
    before += value_of(i);
    wide_before += wide_value_of(i);
  }
}

TEST(Collectives, AgreeWithALoopOverTheLanesOfAnyMask) {
  simt::array<seen, here> out(32);
  lane_random draw(1);
  for (std::uint32_t chosen : {full_warp, 1u, 0x80000000u, 0xffffu, 0xaaaaaaaau, 0x00f0000fu,
                               draw.next(), draw.next(), draw.next(), draw.next()}) {
    out.fill_zero();
    launch<here>({1, 32}, use_all{chosen, out.data()});
    expect_right(chosen, out.to_host());
  }
}

/// The two halves of a warp execute collectives separately, in different program orders.
struct halves {
  std::uint32_t* out;
  QUARRY_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    const std::uint32_t mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    out[lane] = lane < 16 ? reduce_add(mask, 1u) : reduce_add(mask, lane);
  }
};

TEST(Collectives, KeepGroupsWithDifferentMasksApart) {
  simt::array<std::uint32_t, here> out(32);
  launch<here>({1, 32}, halves{out.data()});
  const auto got = out.to_host();
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(got[i], i < 16 ? 16u : 376u);
}

/// Each group of converged lanes adds its size. The sum is the number of lanes, however they are
/// grouped.
struct count_active_lanes {
  std::uint32_t* total;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    if (me % 3 == 1) return;
    for (std::uint64_t i = 0; i < 1 + me % 4; ++i) {
      const lane_mask group = active_mask();
      const std::uint32_t n = reduce_add(group, 1u);
      if (lane_id() == lowest_bit(group)) atomic_ref<std::uint32_t>(*total).add(n, relaxed);
    }
  }
};

TEST(Collectives, ActiveMasksContainEveryCallerOnce) {
  simt::array<std::uint32_t, here> total(1);
  launch<here>({7, 96}, count_active_lanes{total.data()});
  std::uint32_t want = 0;
  for (std::uint32_t me = 0; me < 7 * 96; ++me)
    if (me % 3 != 1) want += 1 + me % 4;
  EXPECT_EQ(total.to_host()[0], want);
}

/// Each thread writes its own word, waits at the block barrier, and reads the word of the next
/// thread.
struct rotate_block {
  std::uint32_t* cells;
  std::uint32_t* out;
  QUARRY_DEVICE void operator()() const {
    const unsigned me = thread_id();
    std::uint32_t* mine = cells + block_id() * block_size();
    mine[me] = me * 3 + block_id();
    sync_block();
    out[global_thread()] = mine[(me + 1) % block_size()];
    sync_block();
    mine[me] = 0;
  }
};

TEST(Collectives, TheBlockBarrierOrdersMemory) {
  simt::array<std::uint32_t, here> cells(5 * 200);
  simt::array<std::uint32_t, here> out(5 * 200);
  launch<here>({5, 200}, rotate_block{cells.data(), out.data()});
  const auto got = out.to_host();
  for (unsigned b = 0; b < 5; ++b)
    for (unsigned t = 0; t < 200; ++t) EXPECT_EQ(got[b * 200 + t], (t + 1) % 200 * 3 + b);
}

struct tell_ids {
  std::uint64_t* out;
  QUARRY_DEVICE void operator()() const {
    std::uint64_t* mine = out + global_thread() * 4;
    mine[0] = std::uint64_t{block_id()} << 32 | thread_id();
    mine[1] = std::uint64_t{lane_id()} << 32 | warp_id();
    mine[2] = std::uint64_t{grid_blocks()} << 32 | block_size();
    mine[3] = std::uint64_t{lanes_below()} << 32 | (grid_threads() & 0xffffffffu);
  }
};

TEST(Ids, AreThoseOfTheGrid) {
  simt::array<std::uint64_t, here> out(3 * 70 * 4);
  launch<here>({3, 70}, tell_ids{out.data()});
  const auto got = out.to_host();
  for (std::uint64_t i = 0; i < 3 * 70; ++i) {
    const std::uint64_t thread = i % 70;
    EXPECT_EQ(got[i * 4], (i / 70) << 32 | thread);
    EXPECT_EQ(got[i * 4 + 1], (thread % 32) << 32 | thread / 32);
    EXPECT_EQ(got[i * 4 + 2], std::uint64_t{3} << 32 | 70);
    EXPECT_EQ(got[i * 4 + 3], ((std::uint64_t{1} << (thread % 32)) - 1) << 32 | 210);
  }
}

TEST(Ids, AHostThreadIsAGridOfOneLane) {
  EXPECT_EQ(lane_id(), 0u);
  EXPECT_EQ(global_thread(), 0u);
  EXPECT_EQ(grid_threads(), 1u);
  EXPECT_EQ(active_mask(), 1u);
  EXPECT_EQ(reduce_add(1u, 42u), 42u);
  EXPECT_EQ(scan_add(1u, 42u).total, 42u);
  EXPECT_EQ(shuffle(1u, 42u, 0), 42u);
  sync_warp(1);
  sync_block();
}

}  // namespace
}  // namespace quarry::simt::collective_test
