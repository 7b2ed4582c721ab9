// SPDX-License-Identifier: Apache-2.0
/// vector in kernels: one lane, many lanes with one vector each, and one vector per warp.
#include "heap/kernels.hpp"

#include <quarry/layer/counted.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace quarry::vector_test {
namespace {

using namespace quarry::testing;

template <class Allocator>
class Vector : public ::testing::Test {};
using allocators = ::testing::Types<cfmalloc, slab, system_heap, counted<cfmalloc>, growing_bump>;
TYPED_TEST_SUITE(Vector, allocators);

/// Every lane fills its own vector, removes ten elements, and sums up the others.
template <class Ref>
struct fill_kernel {
  Ref heap;
  std::uint64_t* sums;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = simt::global_thread();
    quarry::vector<std::uint32_t, Ref> v(heap);
    bool served = v.empty();
    for (std::uint32_t i = 0; i < 100 + me; ++i) served = served && v.push_back(i);
    for (int i = 0; i < 10; ++i) v.pop_back();
    std::uint64_t sum =
        served && v.size() == 90 + me && v.back() == v.size() - 1 ? 0 : 1'000'000'000;
    for (const std::uint32_t x : v) sum += x;
    sums[me] = sum;
  }
};
TYPED_TEST(Vector, GrowsInEveryLane) {
  const heap<TypeParam, here> h(8_MiB);
  simt::array<std::uint64_t, here> sums(256);
  launch<here>({2, 128},
               fill_kernel<typename heap<TypeParam, here>::ref_type>{h.ref(), sums.data()});
  const auto got = sums.to_host();
  for (std::uint64_t i = 0; i < 256; ++i) EXPECT_EQ(got[i], (90 + i) * (89 + i) / 2) << i;
  if (TypeParam::can.frees_one) {
    EXPECT_EQ(h.statistics().live_blocks.value_or(0), 0u) << "the destructor frees the block";
  }
  EXPECT_EQ(h.check_invariants(), "");
}

/// A move-only type that counts its live objects.
struct owner {
  std::int32_t* alive;
  std::uint32_t value;
  QUARRY_DEVICE owner(std::int32_t* count, std::uint32_t v) : alive(count), value(v) { ++*alive; }
  QUARRY_DEVICE owner(owner&& other) noexcept : alive(other.alive), value(other.value) {
    other.value = 0;
    ++*alive;
  }
  QUARRY_DEVICE ~owner() { --*alive; }
};
template <class Ref>
struct owner_kernel {
  Ref heap;
  std::int32_t* out;  // [0]: live objects at the end, [1] to [3]: intermediate results
  QUARRY_DEVICE void operator()() const {
    std::int32_t alive = 0;
    {
      quarry::vector<owner, Ref> v(heap);
      for (std::uint32_t i = 0; i < 100; ++i)
        if (!v.emplace_back(&alive, i + 1)) return;
      out[1] = alive;
      quarry::vector<owner, Ref> w = std::move(v);
      out[2] = static_cast<std::int32_t>(v.size()) + alive;
      std::uint32_t sum = 0;
      for (const owner& o : w) sum += o.value;
      w.pop_back();
      v = std::move(w);
      w.clear();
      out[3] = static_cast<std::int32_t>(sum + v.size());
    }
    out[0] = alive + 1000;
  }
};
TYPED_TEST(Vector, MovesElementsThatCanNotBeCopied) {
  const heap<TypeParam, here> h(1_MiB);
  simt::array<std::int32_t, here> out(4);
  launch<here>({1, 1}, owner_kernel<typename heap<TypeParam, here>::ref_type>{h.ref(), out.data()});
  EXPECT_EQ(out.to_host(), (std::vector<std::int32_t>{1000, 100, 100, 5050 + 99}));
}

template <class Ref>
struct out_of_memory_kernel {
  Ref heap;
  std::uint64_t* out;
  QUARRY_DEVICE void operator()() const {
    quarry::vector<std::uint64_t, Ref> v(heap);
    while (v.push_back(v.size())) {
    }
    out[0] = v.size();
    out[1] = !v.push_back(1) && !v.reserve(v.size() * 2) && !v.resize(~std::size_t{0});
    std::uint64_t good = 0;
    for (std::uint64_t i = 0; i < v.size(); ++i) good += v[i] == i;
    out[2] = good;
  }
};
TYPED_TEST(Vector, IsUnchangedAfterAFailedAllocation) {
  const heap<TypeParam, here> h(64_KiB);
  simt::array<std::uint64_t, here> out(3);
  launch<here>({1, 1},
               out_of_memory_kernel<typename heap<TypeParam, here>::ref_type>{h.ref(), out.data()});
  const auto got = out.to_host();
  EXPECT_GE(got[0] * 8, 16u << 10) << "the vector fills at least a quarter of the heap";
  EXPECT_EQ(got[1], 1u);
  EXPECT_EQ(got[2], got[0]);
  EXPECT_GT(h.failures().count, 0u);
}

template <class Ref>
struct self_kernel {
  Ref heap;
  std::uint64_t* out;
  QUARRY_DEVICE void operator()() const {
    quarry::vector<std::uint64_t, Ref> v(heap);
    v.push_back(42);
    for (int i = 0; i < 1000; ++i) v.push_back(v[0]);  // an element of v, also when v reallocates
    for (const std::uint64_t x : v) *out += x;
    v.resize(2000);
    *out += v[1999];
    v.resize(1);
    *out += v.size();
  }
};
TYPED_TEST(Vector, AppendsItsOwnElements) {
  const heap<TypeParam, here> h(1_MiB);
  simt::array<std::uint64_t, here> out(1);
  launch<here>({1, 1}, self_kernel<typename heap<TypeParam, here>::ref_type>{h.ref(), out.data()});
  EXPECT_EQ(out.to_host()[0], 1001u * 42 + 1);
}

/// Each warp has one vector, in a block of the heap. Its lanes append the multiples of three.
template <class Ref>
struct append_kernel {
  using list = quarry::vector<std::uint32_t, Ref>;
  Ref heap;
  std::uint32_t rounds;
  list** lists;
  std::uint32_t* failures;
  QUARRY_DEVICE void operator()() const {
    constexpr simt::lane_mask all = ~simt::lane_mask{0};
    list*& mine = lists[simt::global_thread() / simt::warp_size];
    if (simt::lane_id() == 0) mine = heap.template create<list>(heap);
    simt::sync_warp(all);
    if (mine == nullptr) return;
    for (std::uint32_t r = 0; r < rounds; ++r) {
      const std::uint32_t number = r * simt::warp_size + simt::lane_id();
      if (!mine->append(all, number, number % 3 == 0) && simt::lane_id() == 0)
        simt::atomic_ref<std::uint32_t>(*failures).add(1, simt::relaxed);
    }
  }
};
/// Counts the elements of each list that are correct, then destroys the lists.
template <class Ref>
struct read_kernel {
  using list = quarry::vector<std::uint32_t, Ref>;
  Ref heap;
  list* const* lists;
  std::uint32_t* out;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = simt::global_thread();
    std::uint32_t correct = 0;
    for (std::uint32_t i = 0; i < lists[me]->size(); ++i) correct += (*lists[me])[i] == 3 * i;
    out[me] = correct;
    if constexpr (Ref::can.frees_one) heap.destroy(lists[me]);
  }
};
TYPED_TEST(Vector, AppendsTheValuesOfAWarpInLaneOrder) {
  constexpr std::uint32_t warps = 8, rounds = 30;
  const heap<TypeParam, here> h(1_MiB);
  using ref = typename heap<TypeParam, here>::ref_type;
  using kernel = append_kernel<ref>;
  simt::array<typename kernel::list*, here> lists(warps);
  simt::array<std::uint32_t, here> failures(1);
  launch<here>({warps / 4, 4 * 32}, kernel{h.ref(), rounds, lists.data(), failures.data()});
  EXPECT_EQ(failures.to_host()[0], 0u);
  simt::array<std::uint32_t, here> correct(warps);
  launch<here>({1, warps}, read_kernel<ref>{h.ref(), lists.data(), correct.data()});
  for (const std::uint32_t n : correct.to_host()) EXPECT_EQ(n, rounds * 32 / 3);
}

TYPED_TEST(Vector, ReportsAFailedAppendToAllLanesOfAWarp) {
  const heap<TypeParam, here> h(4_KiB);
  using ref = typename heap<TypeParam, here>::ref_type;
  using kernel = append_kernel<ref>;
  simt::array<typename kernel::list*, here> lists(1);
  simt::array<std::uint32_t, here> failures(1);
  launch<here>({1, 32}, kernel{h.ref(), 200, lists.data(), failures.data()});
  EXPECT_GT(failures.to_host()[0], 0u);
  simt::array<std::uint32_t, here> correct(1);
  launch<here>({1, 1}, read_kernel<ref>{h.ref(), lists.data(), correct.data()});
  EXPECT_GT(correct.to_host()[0], 0u) << "elements from before the failure remain";
  EXPECT_EQ(h.statistics().live_blocks.value_or(0), 0u);
}

}  // namespace
}  // namespace quarry::vector_test
