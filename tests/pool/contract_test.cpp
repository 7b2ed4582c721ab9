// SPDX-License-Identifier: Apache-2.0
/// The contract of core/allocator.hpp, for every allocator, on the backend for which this file is
/// compiled: the CPU executor as .cpp, a GPU as .cu. The suite covers all allocators of
/// heap/named.hpp.

#include "contract_kernels.hpp"
#include "support/every_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::contract {
namespace {

using here = default_backend;

constexpr std::uint64_t lanes = 4096;
constexpr std::uint64_t pool_size = 4u << 20;

template <class Allocator>
class Contract : public ::testing::Test {
 public:
  using heap_type = heap<Allocator, here>;
  using ref = typename heap_type::ref_type;
  static constexpr abilities can = Allocator::can;

  void SetUp() override {
    if (std::is_same_v<here, quarry::cuda> && !label_of<Allocator>.trial.empty())
      GTEST_SKIP() << "on trial: " << label_of<Allocator>.trial;
  }

  static std::vector<request> make_requests(std::uint64_t count, std::uint64_t largest) {
    simt::lane_random draw(count);
    std::vector<request> requests(count);
    for (request& r : requests) r = {1 + draw.below(static_cast<std::uint32_t>(largest)), nullptr};
    return requests;
  }

  /// Runs `Kernel` over the requests, then checks all blocks.
  template <template <class> class Kernel>
  static void serve(const heap_type& h, simt::array<request, here>& requests) {
    const std::uint64_t count = requests.size();
    launch<here>(grid_for(count), Kernel<ref>{h.ref(), requests.data(), count});
    expect_sound(h, requests);
  }

  static void expect_sound(const heap_type& h, const simt::array<request, here>& requests) {
    std::vector<request> got = requests.to_host();
    simt::array<std::uint32_t, here> damaged(1);
    launch<here>(grid_for(got.size()), count_damaged{requests.data(), got.size(), damaged.data()});
    EXPECT_EQ(damaged.to_host()[0], 0u) << "blocks were overwritten";
    std::erase_if(got, [](const request& r) { return r.block == nullptr; });
    std::sort(got.begin(), got.end(), [](auto& a, auto& b) { return a.block < b.block; });
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(got[i].block) % 16, 0u) << "not aligned";
      if (i > 0) {
        ASSERT_GE(got[i].block, got[i - 1].block + got[i - 1].size) << "blocks overlap";
      }
      if (!can.owns_pool) continue;
      ASSERT_GE(got[i].block, h.pool().begin) << "before the pool";
      ASSERT_LE(got[i].block + got[i].size, h.pool().begin + h.pool().size) << "beyond the pool";
    }
    EXPECT_EQ(h.check_invariants(), "");
  }

  /// Frees the blocks of all requests, if the allocator can free.
  static void release(const heap_type& h, simt::array<request, here>& requests) {
    if constexpr (can.frees_one)
      launch<here>(grid_for(requests.size()),
                   free_own<ref>{h.ref(), requests.data(), requests.size()});
  }
  static void release(const heap_type& h, void* block) {
    if constexpr (can.frees_one) h.deallocate(block);
  }

  static std::uint64_t served(const simt::array<request, here>& requests) {
    const std::vector<request> got = requests.to_host();
    return static_cast<std::uint64_t>(
        std::count_if(got.begin(), got.end(), [](const request& r) { return r.block != nullptr; }));
  }

  static grid grid_for(std::uint64_t count) {
    return {static_cast<std::uint32_t>((count + 127) / 128), 128};
  }

  /// Returns the number of blocks of one size that one lane can allocate. Frees them, if the
  /// allocator can free.
  static std::uint64_t capacity(const heap_type& h, std::uint64_t size) {
    simt::array<void*, here> blocks(pool_size / std::max<std::uint64_t>(size, 16) + 1);
    simt::array<std::uint64_t, here> taken(1);
    launch<here>({1, 1},
                 fill_by_one_lane<ref>{h.ref(), size, blocks.data(), blocks.size(), taken.data()});
    const std::uint64_t n = taken.to_host()[0];
    if constexpr (can.frees_one) launch<here>({4, 128}, free_list<ref>{h.ref(), blocks.data(), n});
    return n;
  }
};

TYPED_TEST_SUITE(Contract, every_allocator, paper_name);

TYPED_TEST(Contract, ReturnsNullptrForZeroBytes) {
  const typename TestFixture::heap_type h(pool_size);
  EXPECT_EQ(h.allocate(0), nullptr);
}

TYPED_TEST(Contract, ReturnsNullptrForMoreThanThePool) {
  constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
  const typename TestFixture::heap_type h(pool_size);
  for (std::size_t n : {max, max - 1, max - 15, max - 16, max - 127, max / 2 + 1, max / 2,
                        std::size_t{pool_size} + 1})
    EXPECT_EQ(h.allocate(n), nullptr) << n;
  void* block = h.allocate(64);
  EXPECT_NE(block, nullptr) << "failed allocations must not consume memory";
  TestFixture::release(h, block);
  EXPECT_EQ(h.check_invariants(), "");
}

TYPED_TEST(Contract, ReturnsDisjointAlignedBlocksInsideThePool) {
  const typename TestFixture::heap_type h(pool_size);
  simt::array<request, here> requests(lanes);
  requests.from_host(TestFixture::make_requests(lanes, 500));
  TestFixture::template serve<malloc_and_fill>(h, requests);
  EXPECT_EQ(TestFixture::served(requests), lanes);
  TestFixture::release(h, requests);
}

TYPED_TEST(Contract, ServesDivergentLanes) {
  const typename TestFixture::heap_type h(pool_size);
  simt::array<request, here> requests(lanes);
  requests.from_host(TestFixture::make_requests(lanes, 300));
  TestFixture::template serve<malloc_diverged>(h, requests);
  EXPECT_EQ(TestFixture::served(requests), lanes - lanes / 7 - (lanes % 7 > 3 ? 1 : 0));
  TestFixture::release(h, requests);
}

TYPED_TEST(Contract, ServesOneLaneOfAWarpAndOddBlockSizes) {
  const typename TestFixture::heap_type h(pool_size);
  simt::array<request, here> requests(65 * 3);
  requests.from_host(TestFixture::make_requests(65 * 3, 100));
  launch<here>({3, 65},
               malloc_and_fill<typename TestFixture::ref>{h.ref(), requests.data(), 65 * 3});
  TestFixture::expect_sound(h, requests);
  EXPECT_EQ(TestFixture::served(requests), 65u * 3);
  TestFixture::release(h, requests);
}

TYPED_TEST(Contract, ReturnsNullptrWhenManyLanesFillThePool) {
  // CUDA's device heap is at least as large as requested, often larger: this test cannot fill it.
  constexpr bool bounded = TestFixture::can.owns_pool || std::is_same_v<here, cpu>;
  if constexpr (bounded && !TestFixture::can.overwrites) {
    const typename TestFixture::heap_type h(bytes(256u << 10));
    simt::array<request, here> requests(lanes);
    requests.from_host(std::vector<request>(lanes, request{200, nullptr}));
    TestFixture::template serve<malloc_and_fill>(h, requests);
    EXPECT_LT(TestFixture::served(requests), lanes);
    EXPECT_GE(TestFixture::served(requests) * 208, (256u << 10) / 2) << "at least half of the pool";
    TestFixture::release(h, requests);
  }
}

TYPED_TEST(Contract, KeepsInvariantsWhenLanesFillThePoolAndLeaveOneByOne) {
  if constexpr (TestFixture::can.owns_pool && !TestFixture::can.overwrites) {
    constexpr bool on_gpu = !std::is_same_v<here, cpu>;
    constexpr unsigned blocks = on_gpu ? 512 : 4;
    for (const std::uint32_t largest : {1u, 256u, 1000u}) {
      const typename TestFixture::heap_type h(bytes(on_gpu ? 256u << 20 : 512u << 10));
      simt::array<std::uint32_t, here> taken(blocks * 128);
      launch<here>({blocks, 128},
                   fill_by_all_lanes<typename TestFixture::ref>{h.ref(), largest, taken.data()});
      std::uint64_t sum = 0;
      for (const std::uint32_t n : taken.to_host()) sum += n;
      EXPECT_GT(sum, 0u);
      EXPECT_EQ(h.check_invariants(), "");
      const heap_statistics s = h.statistics();
      EXPECT_EQ(s.live_blocks.value_or(sum), sum) << "sizes to " << 16 + largest;
    }
  }
}

TYPED_TEST(Contract, ServesThePoolAgainAfterAllIsFreed) {
  if constexpr (TestFixture::can.frees_one) {
    const typename TestFixture::heap_type h(pool_size);
    const std::uint64_t at_first = TestFixture::capacity(h, 1000);
    EXPECT_GT(at_first, 0u);
    simt::array<request, here> requests(lanes);
    for (int round = 0; round < 4; ++round) {
      requests.from_host(TestFixture::make_requests(lanes, 700));
      TestFixture::template serve<malloc_and_fill>(h, requests);
      EXPECT_EQ(TestFixture::served(requests), lanes);
      launch<here>(TestFixture::grid_for(lanes),
                   free_of_another<typename TestFixture::ref>{h.ref(), requests.data(), lanes});
    }
    // A search from another offset splits the pool differently, so one block less may fit.
    EXPECT_GE(TestFixture::capacity(h, 1000) + 1, at_first);
    EXPECT_EQ(h.check_invariants(), "");
  }
}

TYPED_TEST(Contract, ServesEverySmallestBlockAgainAfterAllIsFreed) {
  if constexpr (TestFixture::can.frees_one && TestFixture::can.owns_pool) {
    const typename TestFixture::heap_type h(bytes(128u << 10));
    const std::uint64_t at_first = TestFixture::capacity(h, 1);
    simt::array<std::uint32_t, here> counts(2);
    launch<here>({8, 64}, churn<typename TestFixture::ref>{h.ref(), 24, 600, counts.data(),
                                                           counts.data() + 1});
    EXPECT_EQ(TestFixture::capacity(h, 1), at_first);
    EXPECT_EQ(TestFixture::capacity(h, 1), at_first);
  }
}

TYPED_TEST(Contract, IgnoresFreeOfNullptr) {
  if constexpr (TestFixture::can.frees_one) {
    const typename TestFixture::heap_type h(pool_size);
    h.deallocate(nullptr);
    EXPECT_EQ(h.check_invariants(), "");
  }
}

TYPED_TEST(Contract, KeepsBlocksApartUnderChurn) {
  if constexpr (TestFixture::can.frees_one) {
    const typename TestFixture::heap_type h(pool_size);
    simt::array<std::uint32_t, here> counts(2);
    launch<here>({16, 64}, churn<typename TestFixture::ref>{h.ref(), 24, 300, counts.data(),
                                                            counts.data() + 1});
    EXPECT_EQ(counts.to_host()[0], 0u) << "blocks were overwritten";
    EXPECT_EQ(counts.to_host()[1], 0u) << "allocations failed while memory was free";
    EXPECT_EQ(h.check_invariants(), "");
    const heap_statistics s = h.statistics();
    EXPECT_EQ(s.live_blocks.value_or(0), 0u);
    EXPECT_EQ(s.live_bytes.value_or(0), 0u);
  }
}

TYPED_TEST(Contract, SurvivesChurnInAPoolThatIsTooSmall) {
  if constexpr (TestFixture::can.frees_one) {
    const typename TestFixture::heap_type h(bytes(128u << 10));
    simt::array<std::uint32_t, here> counts(2);
    launch<here>({16, 64}, churn<typename TestFixture::ref>{h.ref(), 24, 600, counts.data(),
                                                            counts.data() + 1});
    EXPECT_EQ(counts.to_host()[0], 0u) << "blocks were overwritten";
    void* block = h.allocate(64);
    EXPECT_NE(block, nullptr) << "freed memory is available";
    h.deallocate(block);
    EXPECT_EQ(h.check_invariants(), "");
  }
}

TYPED_TEST(Contract, LetsAnotherLaneFreeABlock) {
  if constexpr (TestFixture::can.frees_one) {
    const typename TestFixture::heap_type h(pool_size);
    simt::array<std::uint64_t, here> mailboxes(512);
    simt::array<std::uint32_t, here> damaged(1);
    launch<here>({8, 64}, pass_to_neighbour<typename TestFixture::ref>{h.ref(), mailboxes.data(),
                                                                       damaged.data()});
    EXPECT_EQ(damaged.to_host()[0], 0u);
    EXPECT_EQ(h.check_invariants(), "");
  }
}

TYPED_TEST(Contract, ServesTheWholePoolAfterReset) {
  if constexpr (TestFixture::can.frees_all && !TestFixture::can.overwrites) {
    typename TestFixture::heap_type h(pool_size);
    const std::uint64_t at_first = TestFixture::capacity(h, 1000);
    h.reset();
    EXPECT_EQ(TestFixture::capacity(h, 1000), at_first);
    h.reset();
    EXPECT_EQ(h.statistics().live_bytes.value_or(0), 0u);
  }
}

TYPED_TEST(Contract, ServesLargerAlignmentsIfSupported) {
  if constexpr (aligning_allocator<TypeParam>) {
    const typename TestFixture::heap_type h(pool_size);
    simt::array<void*, here> out(32);
    for (std::uint64_t alignment = 1; alignment <= 4096; alignment *= 2) {
      launch<here>({1, 32},
                   malloc_aligned<typename TestFixture::ref>{h.ref(), 40, alignment, out.data()});
      for (void* p : out.to_host()) {
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % std::max<std::uint64_t>(alignment, 16), 0u);
      }
    }
    constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
    launch<here>({1, 1}, malloc_aligned<typename TestFixture::ref>{h.ref(), max, 4096, out.data()});
    EXPECT_EQ(out.to_host()[0], nullptr);
    launch<here>({1, 1}, malloc_aligned<typename TestFixture::ref>{
                             h.ref(), 16, std::uint64_t{1} << 63, out.data()});
    EXPECT_EQ(out.to_host()[0], nullptr);
  }
}

TYPED_TEST(Contract, HandlesAHundredGibibytes) {
  if constexpr (TestFixture::can.owns_pool) {
    // Sanitizers need several bytes of shadow memory for every byte of metadata.
    constexpr std::uint64_t one_per_cent =
        (std::uint64_t{1} << 30) / (QUARRY_ASAN || QUARRY_TSAN ? 10 : 1);
    const typename TestFixture::heap_type h(bytes(100 * one_per_cent));
    auto* low = static_cast<std::byte*>(h.allocate(60 * one_per_cent));
    auto* high = static_cast<std::byte*>(h.allocate(39 * one_per_cent));
    ASSERT_NE(low, nullptr);
    ASSERT_NE(high, nullptr);
    EXPECT_GE(high > low ? high - low : low - high, static_cast<std::ptrdiff_t>(39 * one_per_cent));
    simt::array<std::uint32_t, here> good(1);
    launch<here>({1, 1}, touch_ends{low, 60 * one_per_cent, good.data()});
    EXPECT_EQ(good.to_host()[0], 1u);
    launch<here>({1, 1}, touch_ends{high, 39 * one_per_cent, good.data()});
    EXPECT_EQ(good.to_host()[0], 1u);
    EXPECT_EQ(h.check_invariants(), "");
  }
}

}  // namespace
}  // namespace quarry::contract
