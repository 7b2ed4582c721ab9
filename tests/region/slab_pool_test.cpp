// SPDX-License-Identifier: Apache-2.0
#include "region/pool_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

namespace slab_pool_test {
namespace {

using namespace quarry;
using quarry::testing::lone_pool;
using quarry::testing::pool_model;

constexpr slab_geometry tiny{1024, 65536, 16};

std::vector<std::uint8_t> random_script(std::uint64_t seed, std::size_t length) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> script(length);
  for (std::uint8_t& b : script) b = static_cast<std::uint8_t>(random());
  return script;
}

TEST(SlabPool, KeepsItsInvariantsForRandomScripts) {
  std::uint64_t failures = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    pool_model<> model(seed % 2 == 0 ? 4_MiB : 64_MiB);
    ASSERT_EQ(model.run(random_script(seed, 60'000)), "") << "seed " << seed;
    failures += model.failures();
  }
  EXPECT_GT(failures, 0u) << "no script ran out of memory";
}

TEST(SlabPool, KeepsItsInvariantsWithAnotherGeometry) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) {
    pool_model<tiny> model(seed % 2 == 0 ? 1_MiB : 8_MiB);
    ASSERT_EQ(model.run(random_script(seed, 60'000)), "") << "seed " << seed;
  }
}

TEST(SlabPool, WastesNothingOnSlotsThatStraddleSlabs) {
  lone_pool<> it(4_MiB);
  std::set<void*> got;
  for (unsigned i = 0; i < 3 * 4096 / 192; ++i) got.insert(it.pool.allocate(192));
  EXPECT_EQ(got.size(), 64u);
  const auto span = static_cast<std::byte*>(*got.rbegin()) - static_cast<std::byte*>(*got.begin());
  EXPECT_EQ(span, 3 * 4096 - 192);
}

TEST(SlabPool, AllocatesManySlotsInOneCall) {
  for (const std::size_t size : {64u, 192u, 256u, 3000u, 4096u, 9000u}) {
    lone_pool<> it(4_MiB);
    void* single = it.pool.allocate(size);
    std::set<void*> got{single};
    std::uint64_t sum = 0;
    for (const std::uint64_t most : {1u, 5u, 100u, 100'000u}) {
      const std::uint64_t count =
          it.pool.allocate_slots(size, most, [&](slab_number n, std::uint64_t mask) {
            for (; mask != 0; mask &= mask - 1)
              EXPECT_TRUE(got.insert(it.table.address(n) + std::countr_zero(mask) * 64).second);
          });
      EXPECT_LE(count, most);
      sum += count;
      EXPECT_EQ(got.size(), sum + 1);
      EXPECT_EQ(it.check(), "");
    }
    EXPECT_GT(sum * size, 0.95 * (4 << 20)) << "of all there is, for objects of " << size;
    for (void* p : got) {
      EXPECT_GE(it.pool.usable_size(p), size);
      EXPECT_EQ(it.pool.deallocate(p), region_status::ok);
    }
    EXPECT_EQ(it.check(), "");
  }
}

TEST(SlabPool, ServesObjectsAsLargeAsTheWholePool) {
  lone_pool<> it(4_MiB);
  void* p = it.pool.allocate(4 << 20);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(it.pool.allocate(1), nullptr);
  EXPECT_EQ(it.check(), "");
  EXPECT_EQ(it.pool.deallocate(p), region_status::ok);
  EXPECT_NE(it.pool.allocate(4 << 20), nullptr);
}

TEST(SlabPool, AllocatesTheWholePoolAgainAfterAllObjectsAreFreed) {
  lone_pool<> it(4_MiB);
  for (const std::size_t size : {64u, 192u, 4096u, 6144u, 50048u, 65u}) {
    std::vector<void*> all;
    while (void* p = it.pool.allocate(size)) all.push_back(p);
    EXPECT_GE(all.size() * size, (4u << 20) / 100 * 80 / (size == 65 ? 2 : 1)) << size;
    std::shuffle(all.begin(), all.end(), std::mt19937_64(size));
    for (void* p : all) ASSERT_EQ(it.pool.deallocate(p), region_status::ok);
    ASSERT_EQ(it.check(), "");
  }
  EXPECT_NE(it.pool.allocate(4 << 20), nullptr) << "some slabs did not come back";
}

TEST(SlabPool, FreesWithoutMemoryForMetadata) {
  lone_pool<> it(4_MiB);
  std::vector<void*> all;
  while (void* p = it.pool.allocate(4096)) all.push_back(p);
  it.source.metadata_open = false;
  for (std::size_t i = 0; i < all.size(); i += 2)
    ASSERT_EQ(it.pool.deallocate(all[i]), region_status::ok);
  EXPECT_EQ(it.check(), "");
  for (std::size_t i = 1; i < all.size(); i += 2)
    ASSERT_EQ(it.pool.deallocate(all[i]), region_status::ok);
  EXPECT_EQ(it.check(), "");
  EXPECT_NE(it.pool.allocate(4 << 20), nullptr);
}

TEST(SlabPool, ReportsPointersThatAreNoObject) {
  lone_pool<> it(4_MiB);
  auto* p = static_cast<std::byte*>(it.pool.allocate(192));
  auto* large = static_cast<std::byte*>(it.pool.allocate(100'000));
  EXPECT_EQ(it.pool.deallocate(p + 1), region_status::not_an_object);
  EXPECT_EQ(it.pool.deallocate(p + 64), region_status::not_an_object);
  EXPECT_EQ(it.pool.deallocate(p + 192), region_status::not_an_object);
  EXPECT_EQ(it.pool.deallocate(large + 64), region_status::not_an_object);
  EXPECT_EQ(it.pool.deallocate(large + 8192), region_status::not_an_object);
  EXPECT_EQ(it.pool.deallocate(nullptr), region_status::not_ours);
  EXPECT_EQ(it.pool.deallocate(&it), region_status::not_ours);
  EXPECT_EQ(it.pool.deallocate(it.table.base() + it.table.size()), region_status::not_ours);
  EXPECT_EQ(it.pool.deallocate(it.table.base() - 64), region_status::not_ours);
  EXPECT_EQ(it.pool.deallocate(p), region_status::ok);
  EXPECT_EQ(it.pool.deallocate(p), region_status::not_an_object);
  EXPECT_EQ(it.pool.deallocate(large), region_status::ok);
  EXPECT_NE(it.pool.deallocate(large), region_status::ok);
  EXPECT_EQ(it.check(), "");
}

TEST(SlabPool, FailsForSizesThatExceedThePool) {
  lone_pool<> it(4_MiB);
  EXPECT_EQ(it.pool.allocate(0), nullptr);
  EXPECT_EQ(it.pool.allocate(~std::size_t{0}), nullptr);
  EXPECT_EQ(it.pool.allocate(~std::size_t{0} - 63), nullptr);
  EXPECT_EQ(it.pool.allocate((4 << 20) + 1), nullptr);
  EXPECT_EQ(it.pool.allocate(64, 3), nullptr);
  EXPECT_EQ(it.pool.allocate(64, 0), nullptr);
  EXPECT_EQ(it.pool.allocate(64, std::size_t{1} << 40), nullptr);
  EXPECT_EQ(it.check(), "");
}

TEST(SlabPool, GrowsALargeObjectIntoTheFreeSlabsBehindIt) {
  lone_pool<> it(4_MiB);
  it.source.chunk = 1024;
  void* p = it.pool.allocate(100'000);
  EXPECT_TRUE(it.pool.resize(p, 400'000));
  EXPECT_GE(it.pool.usable_size(p), 400'000u);
  void* wall = it.pool.allocate(100'000);
  EXPECT_FALSE(it.pool.resize(p, 2'000'000));
  EXPECT_TRUE(it.pool.resize(p, 50'000));
  EXPECT_TRUE(it.pool.resize(p, 400'000)) << "the slabs behind it were its own before";
  EXPECT_EQ(it.pool.deallocate(wall), region_status::ok);
  EXPECT_EQ(it.check(), "");
}

TEST(SlabPool, AllocatesNothingIfABulkRequestFails) {
  lone_pool<> it(4_MiB);
  std::vector<void*> all((4 << 20) / 4096 + 1);
  EXPECT_FALSE(it.pool.allocate_bulk(4096, all));
  EXPECT_EQ(it.pool.statistics().objects, 0u);
  EXPECT_EQ(it.check(), "");
  all.pop_back();
  EXPECT_TRUE(it.pool.allocate_bulk(4096, all));
}

TEST(SlabPool, KeepsMetadataOutOfTheSlabs) {
  lone_pool<> it(4_MiB);
  std::vector<void*> all(10'000);
  ASSERT_TRUE(it.pool.allocate_bulk(64, all));
  for (void* p : all) std::memset(p, 0xee, 64);
  EXPECT_EQ(it.check(), "");
  for (void* p : all) ASSERT_EQ(it.pool.deallocate(p), region_status::ok);
  for (void* p : all)
    ASSERT_EQ(static_cast<std::byte*>(p)[0], std::byte{0xee}) << "freeing wrote into the object";
}

TEST(SlabTable, UnmapsItsRange) {
  const auto mappings = [] {
    std::ifstream in("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  };
  { lone_pool<tiny> warm(1_MiB); }
  const auto before = mappings();
  for (int i = 0; i < 50; ++i) lone_pool<tiny> it(1_MiB);
  EXPECT_LE(mappings(), before + 20);
}

TEST(SlabPool, ReportsABitThatIsNoSlot) {
  lone_pool<> it(4_MiB);
  void* p = it.pool.allocate(192);
  std::uint64_t& live = it.table.live(it.table.slab_at(it.table.offset_of(p)));
  live |= 2;
  EXPECT_NE(it.check(), "");
  live ^= 2;
  EXPECT_EQ(it.check(), "");
  live ^= 1;
  EXPECT_NE(it.check(), "");
  live ^= 1;
}

}  // namespace
}  // namespace slab_pool_test
