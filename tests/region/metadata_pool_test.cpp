// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/detail/definitions.hpp>

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace metadata_pool_test {
namespace {

using namespace quarry;

constexpr slab_geometry tiny{1024, 65536, 16};

/// Requests that stress the reserve: slabs in all lengths, so that the index of free runs grows and
/// shrinks, with node-sized and block-sized requests between them.
template <class Pool>
std::string churn(Pool& metadata, std::uint64_t seed, unsigned operations) {
  std::mt19937_64 random(seed);
  std::vector<void*> live;
  static constexpr std::size_t sizes[] = {64, 64, 1024, 4096, 8192, 40'000, 70'000, 192, 20'000};
  for (unsigned i = 0; i < operations; ++i) {
    if (random() % 100 < (i / 500 % 2 == 0 ? 60 : 40) || live.empty()) {
      if (void* p = metadata.allocate(sizes[random() % std::size(sizes)])) live.push_back(p);
    } else {
      std::swap(live[random() % live.size()], live.back());
      if (metadata.deallocate(live.back()) != region_status::ok)
        return "deallocate rejects a live object";
      live.pop_back();
    }
    if (i % 97 == 0)
      if (std::string fault = metadata.check_invariants(); !fault.empty()) return fault;
  }
  for (void* p : live)
    if (metadata.deallocate(p) != region_status::ok) return "deallocate rejects a live object";
  return metadata.check_invariants();
}

TEST(MetadataPool, SatisfiesItsInvariantsAfterTheBootstrap) {
  metadata_pool<> metadata(16_MiB);
  EXPECT_EQ(metadata.check_invariants(), "");
  EXPECT_EQ(metadata.shortfalls(), 0u);
  EXPECT_EQ(metadata.statistics().objects, 1u + metadata_pool<>::index_levels)
      << "a block of classes and one path of the index";
}

TEST(MetadataPool, SatisfiesItsInvariantsWithAnotherGeometry) {
  metadata_pool<tiny> metadata(1_MiB);
  EXPECT_EQ(metadata.check_invariants(), "");
  EXPECT_EQ(churn(metadata, 5, 20'000), "");
}

TEST(MetadataPool, RejectsARangeTooSmallForItsBootstrap) {
  constexpr slab_geometry short_pages{1024, 16384, 16};
  EXPECT_THROW(metadata_pool<short_pages>(1_B), out_of_memory);
}

/// Every count of node-sized objects at which the reserve could be at its edge, and at each of them
/// every kind of request that takes slabs.
TEST(MetadataPool, NeverRunsOutOfReserveAtAnyNumberOfNodes) {
  for (const std::size_t request : {std::size_t{64}, std::size_t{1024}, std::size_t{4096},
                                    std::size_t{8192}, std::size_t{300'000}}) {
    metadata_pool<> metadata(64_MiB);
    std::vector<void*> nodes;
    for (unsigned count = 0; count < 3 * 1024; ++count) {
      void* p = metadata.allocate(request);
      ASSERT_NE(p, nullptr);
      if (count % 2 == 0) {
        ASSERT_EQ(metadata.deallocate(p), region_status::ok);
      }
      ASSERT_EQ(metadata.shortfalls(), 0u) << count << " nodes, request of " << request;
      nodes.push_back(metadata.allocate(64));
      if (metadata.slabs_begun() > 12'000) break;
    }
    EXPECT_EQ(metadata.check_invariants(), "");
    EXPECT_GT(metadata.least_spare_nodes(), 0u);
    for (void* p : nodes) ASSERT_EQ(metadata.deallocate(p), region_status::ok);
    EXPECT_EQ(metadata.shortfalls(), 0u);
  }
}

/// The same from the other side: the spare nodes are brought to every number that a request may
/// start with, then the most demanding requests are made.
TEST(MetadataPool, NeverRunsOutOfReserveFromAnyNumberOfSpareNodes) {
  for (std::uint64_t spare = metadata_pool<>::node_reserve;
       spare < metadata_pool<>::node_reserve + 80; ++spare) {
    metadata_pool<> metadata(64_MiB);
    while (metadata.spare_nodes() > spare) ASSERT_NE(metadata.allocate(64), nullptr);
    for (const std::size_t size : {70'000u, 4096u, 8192u, 20'000u, 300'000u, 1024u, 2'000'000u})
      ASSERT_NE(metadata.allocate(size), nullptr);
    ASSERT_EQ(metadata.shortfalls(), 0u) << "from " << spare;
    ASSERT_EQ(metadata.check_invariants(), "");
  }
}

/// The index of free runs grows by one entry with every other object that is freed: each needs
/// nodes while a free is in progress. Starts with `spare` free node slots.
template <class Pool>
std::uint64_t shortfalls_of_holes(std::uint64_t spare) {
  Pool metadata(256_MiB);
  std::vector<void*> large;
  for (int i = 0; i < 400; ++i) large.push_back(metadata.allocate(300'000));
  while (metadata.spare_nodes() > spare) EXPECT_NE(metadata.allocate(64), nullptr);
  for (std::size_t i = 0; i < large.size(); i += 2)
    EXPECT_EQ(metadata.deallocate(large[i]), region_status::ok);
  EXPECT_NE(metadata.allocate(4096), nullptr);
  for (std::size_t i = 1; i < large.size(); i += 2)
    EXPECT_EQ(metadata.deallocate(large[i]), region_status::ok);
  EXPECT_EQ(metadata.check_invariants(), "");
  return metadata.shortfalls();
}

TEST(MetadataPool, NeverRunsOutOfReserveWhileHolesAppear) {
  using metadata = metadata_pool<>;
  for (std::uint64_t spare = metadata::node_reserve; spare < metadata::node_reserve + 70; ++spare)
    ASSERT_EQ(shortfalls_of_holes<metadata>(spare), 0u) << "from " << spare;
}

TEST(MetadataPool, HasShortfallsWithoutAReserve) {
  EXPECT_GT((shortfalls_of_holes<metadata_pool<default_geometry, 0>>(0)), 0u);
}

TEST(MetadataPool, KeepsItsReserveThroughChurn) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    metadata_pool<> metadata(256_MiB);
    ASSERT_EQ(churn(metadata, seed, 20'000), "") << "seed " << seed;
    EXPECT_EQ(metadata.shortfalls(), 0u);
    EXPECT_GT(metadata.least_spare_nodes(), 0u);
  }
}

TEST(MetadataPool, FailsWhenItsRangeIsFullAndRecovers) {
  for (const std::size_t size : {64u, 1024u, 4096u, 192u, 50'048u}) {
    metadata_pool<> metadata(2_MiB);
    std::vector<void*> all;
    while (void* p = metadata.allocate(size)) all.push_back(p);
    EXPECT_EQ(metadata.check_invariants(), "") << size;
    EXPECT_EQ(metadata.allocate(size), nullptr);
    EXPECT_EQ(metadata.shortfalls(), 0u) << size;
    for (void* p : all) ASSERT_EQ(metadata.deallocate(p), region_status::ok);
    EXPECT_EQ(metadata.check_invariants(), "") << size;
    EXPECT_NE(metadata.allocate(size), nullptr) << size;
  }
}

TEST(MetadataPool, ReusesSlabsOfOneSizeForAnother) {
  metadata_pool<> metadata(2_MiB);
  std::size_t first_round = 0;
  for (int round = 0; round < 3; ++round)
    for (const std::size_t size : {64u, 4096u, 192u}) {
      std::vector<void*> all;
      while (void* p = metadata.allocate(size)) all.push_back(p);
      if (round == 0 && size == 4096) first_round = all.size();
      if (round > 0 && size == 4096) {
        EXPECT_GE(all.size() + 20, first_round);
      }
      for (void* p : all) ASSERT_EQ(metadata.deallocate(p), region_status::ok);
    }
  EXPECT_EQ(metadata.check_invariants(), "");
}

TEST(MetadataPool, ReportsPointersThatAreNoObject) {
  metadata_pool<> metadata(2_MiB);
  auto* p = static_cast<std::byte*>(metadata.allocate(192));
  EXPECT_EQ(metadata.deallocate(p + 64), region_status::not_an_object);
  EXPECT_EQ(metadata.deallocate(nullptr), region_status::not_ours);
  EXPECT_EQ(metadata.deallocate(p), region_status::ok);
  EXPECT_EQ(metadata.deallocate(p), region_status::not_an_object);
  EXPECT_EQ(metadata.check_invariants(), "");
}

}  // namespace
}  // namespace metadata_pool_test
