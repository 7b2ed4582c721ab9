// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/kernel_pool.hpp>

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace {

using namespace quarry;

constexpr slab_geometry tiny{1024, 65536, 16};

/// Requests that stress the reserve: slabs in all lengths, so that the index of free runs grows and
/// shrinks, with node-sized and block-sized requests between them.
template <class Kernel>
std::string churn(Kernel& kernel, std::uint64_t seed, unsigned operations) {
  std::mt19937_64 random(seed);
  std::vector<void*> live;
  static constexpr std::size_t sizes[] = {64, 64, 1024, 4096, 8192, 40'000, 70'000, 192, 20'000};
  for (unsigned i = 0; i < operations; ++i) {
    if (random() % 100 < (i / 500 % 2 == 0 ? 60 : 40) || live.empty()) {
      if (void* p = kernel.allocate(sizes[random() % std::size(sizes)])) live.push_back(p);
    } else {
      std::swap(live[random() % live.size()], live.back());
      if (kernel.deallocate(live.back()) != region_status::ok)
        return "free refuses a living object";
      live.pop_back();
    }
    if (i % 97 == 0)
      if (std::string fault = kernel.check_invariants(); !fault.empty()) return fault;
  }
  for (void* p : live)
    if (kernel.deallocate(p) != region_status::ok) return "free refuses a living object";
  return kernel.check_invariants();
}

TEST(KernelPool, StartsSoundFromItsBootstrap) {
  kernel_pool<> kernel(16_MiB);
  EXPECT_EQ(kernel.check_invariants(), "");
  EXPECT_EQ(kernel.shortfalls(), 0u);
  EXPECT_EQ(kernel.statistics().objects, 1u + kernel_pool<>::index_levels)
      << "a block of classes and one path of the index";
}

TEST(KernelPool, StartsSoundWithSlabsOfAnotherSize) {
  kernel_pool<tiny> kernel(1_MiB);
  EXPECT_EQ(kernel.check_invariants(), "");
  EXPECT_EQ(churn(kernel, 5, 20'000), "");
}

TEST(KernelPool, RefusesARangeTooSmallForItself) {
  constexpr slab_geometry short_pages{1024, 16384, 16};
  EXPECT_THROW(kernel_pool<short_pages>(1_B), out_of_memory);
}

/// Every count of node-sized objects at which the reserve could be at its edge, and at each of them
/// every kind of request that takes slabs.
TEST(KernelPool, NeverRunsOutOfReserveAtAnyNumberOfNodes) {
  for (const std::size_t request : {std::size_t{64}, std::size_t{1024}, std::size_t{4096},
                                    std::size_t{8192}, std::size_t{300'000}}) {
    kernel_pool<> kernel(64_MiB);
    std::vector<void*> nodes;
    for (unsigned count = 0; count < 3 * 1024; ++count) {
      void* p = kernel.allocate(request);
      ASSERT_NE(p, nullptr);
      if (count % 2 == 0) {
        ASSERT_EQ(kernel.deallocate(p), region_status::ok);
      }
      ASSERT_EQ(kernel.shortfalls(), 0u) << count << " nodes, request of " << request;
      nodes.push_back(kernel.allocate(64));
      if (kernel.slabs_begun() > 12'000) break;
    }
    EXPECT_EQ(kernel.check_invariants(), "");
    EXPECT_GT(kernel.least_spare_nodes(), 0u);
    for (void* p : nodes) ASSERT_EQ(kernel.deallocate(p), region_status::ok);
    EXPECT_EQ(kernel.shortfalls(), 0u);
  }
}

/// The same from the other side: the spare nodes are brought to every number that a request may
/// start with, then the most demanding requests are made.
TEST(KernelPool, NeverRunsOutOfReserveFromAnyNumberOfSpareNodes) {
  for (std::uint64_t spare = kernel_pool<>::node_reserve; spare < kernel_pool<>::node_reserve + 80;
       ++spare) {
    kernel_pool<> kernel(64_MiB);
    while (kernel.spare_nodes() > spare) ASSERT_NE(kernel.allocate(64), nullptr);
    for (const std::size_t size : {70'000u, 4096u, 8192u, 20'000u, 300'000u, 1024u, 2'000'000u})
      ASSERT_NE(kernel.allocate(size), nullptr);
    ASSERT_EQ(kernel.shortfalls(), 0u) << "from " << spare;
    ASSERT_EQ(kernel.check_invariants(), "");
  }
}

/// The index of free runs grows by one entry with every other object that is freed: each needs nodes
/// while a free is in progress. Starts with `spare` free node slots.
template <class Kernel>
std::uint64_t shortfalls_of_holes(std::uint64_t spare) {
  Kernel kernel(256_MiB);
  std::vector<void*> large;
  for (int i = 0; i < 400; ++i) large.push_back(kernel.allocate(300'000));
  while (kernel.spare_nodes() > spare) EXPECT_NE(kernel.allocate(64), nullptr);
  for (std::size_t i = 0; i < large.size(); i += 2)
    EXPECT_EQ(kernel.deallocate(large[i]), region_status::ok);
  EXPECT_NE(kernel.allocate(4096), nullptr);
  for (std::size_t i = 1; i < large.size(); i += 2)
    EXPECT_EQ(kernel.deallocate(large[i]), region_status::ok);
  EXPECT_EQ(kernel.check_invariants(), "");
  return kernel.shortfalls();
}

TEST(KernelPool, NeverRunsOutOfReserveWhileHolesAppear) {
  using kernel = kernel_pool<>;
  for (std::uint64_t spare = kernel::node_reserve; spare < kernel::node_reserve + 70; ++spare)
    ASSERT_EQ(shortfalls_of_holes<kernel>(spare), 0u) << "from " << spare;
}

TEST(KernelPool, RunsShortWithoutAReserve) {
  EXPECT_GT((shortfalls_of_holes<kernel_pool<default_geometry, 0>>(0)), 0u);
}

TEST(KernelPool, KeepsItsReserveThroughChurn) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    kernel_pool<> kernel(256_MiB);
    ASSERT_EQ(churn(kernel, seed, 20'000), "") << "seed " << seed;
    EXPECT_EQ(kernel.shortfalls(), 0u);
    EXPECT_GT(kernel.least_spare_nodes(), 0u);
  }
}

TEST(KernelPool, RefusesAndRecoversWhenItsRangeIsFull) {
  for (const std::size_t size : {64u, 1024u, 4096u, 192u, 50'048u}) {
    kernel_pool<> kernel(2_MiB);
    std::vector<void*> all;
    while (void* p = kernel.allocate(size)) all.push_back(p);
    EXPECT_EQ(kernel.check_invariants(), "") << size;
    EXPECT_EQ(kernel.allocate(size), nullptr);
    EXPECT_EQ(kernel.shortfalls(), 0u) << size;
    for (void* p : all) ASSERT_EQ(kernel.deallocate(p), region_status::ok);
    EXPECT_EQ(kernel.check_invariants(), "") << size;
    EXPECT_NE(kernel.allocate(size), nullptr) << size;
  }
}

TEST(KernelPool, GivesSlabsOfOneSizeToAnother) {
  kernel_pool<> kernel(2_MiB);
  std::size_t first_round = 0;
  for (int round = 0; round < 3; ++round)
    for (const std::size_t size : {64u, 4096u, 192u}) {
      std::vector<void*> all;
      while (void* p = kernel.allocate(size)) all.push_back(p);
      if (round == 0 && size == 4096) first_round = all.size();
      if (round > 0 && size == 4096) {
        EXPECT_GE(all.size() + 20, first_round);
      }
      for (void* p : all) ASSERT_EQ(kernel.deallocate(p), region_status::ok);
    }
  EXPECT_EQ(kernel.check_invariants(), "");
}

TEST(KernelPool, RefusesWhatIsNoObject) {
  kernel_pool<> kernel(2_MiB);
  auto* p = static_cast<std::byte*>(kernel.allocate(192));
  EXPECT_EQ(kernel.deallocate(p + 64), region_status::not_an_object);
  EXPECT_EQ(kernel.deallocate(nullptr), region_status::not_ours);
  EXPECT_EQ(kernel.deallocate(p), region_status::ok);
  EXPECT_EQ(kernel.deallocate(p), region_status::not_an_object);
  EXPECT_EQ(kernel.check_invariants(), "");
}

}  // namespace
