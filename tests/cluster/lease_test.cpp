// SPDX-License-Identifier: Apache-2.0
#include <quarry/cluster/lease.hpp>

#include <gtest/gtest.h>

#include <set>

namespace quarry::cluster {
namespace {

constexpr std::uint64_t slab = 0x1000'0000'0000;

TEST(LeaseBook, GivesOutEverySlotOnce) {
  lease_book b;
  b.add(5, 2, slab, 0b0101'0101);
  std::set<void*> got;
  for (int i = 0; i < 4; ++i) {
    void* p = b.take(5, 2);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(got.insert(p).second);
    EXPECT_EQ(b.size_of(p), 128u);
    EXPECT_EQ(b.region_of(p), 5u);
  }
  EXPECT_EQ(b.take(5, 2), nullptr);
  EXPECT_EQ(b.take(5, 1), nullptr) << "another size";
  EXPECT_EQ(b.take(6, 2), nullptr) << "another region";
  for (void* p : got) EXPECT_EQ(b.put(p), lease_book::put_result::done);
  for (void* p : got) EXPECT_EQ(b.put(p), lease_book::put_result::freed_already);
  EXPECT_NE(b.take(5, 2), nullptr);
}

TEST(LeaseBook, KnowsWhatIsNotItsOwn) {
  lease_book b;
  b.add(5, 1, slab, 0b10);
  EXPECT_EQ(b.put(reinterpret_cast<void*>(slab)), lease_book::put_result::not_ours);
  EXPECT_EQ(b.put(reinterpret_cast<void*>(slab + 65)), lease_book::put_result::not_ours);
  EXPECT_EQ(b.put(reinterpret_cast<void*>(slab + 4096)), lease_book::put_result::not_ours);
  EXPECT_EQ(b.size_of(reinterpret_cast<void*>(slab + 64)), 0u) << "on loan, but no object";
}

TEST(LeaseBook, LosesAnObjectThatAnotherFreed) {
  lease_book b;
  b.add(5, 1, slab, 0b11);
  void* p = b.take(5, 1);
  b.lose(p);
  EXPECT_EQ(b.put(p), lease_book::put_result::not_ours);
  EXPECT_NE(b.take(5, 1), nullptr);
  EXPECT_EQ(b.take(5, 1), nullptr) << "the lost slot is not given out again";
}

TEST(LeaseBook, ForgetsARegionAndTakesItsSlabsForAnother) {
  lease_book b;
  b.add(5, 1, slab, 0b11);
  b.take(5, 1);
  b.drop(5);
  EXPECT_EQ(b.take(5, 1), nullptr);
  b.add(6, 4, slab, 0b1);
  EXPECT_EQ(b.take(6, 4), reinterpret_cast<void*>(slab));
  EXPECT_EQ(b.take(5, 1), nullptr);
}

TEST(LeaseBook, MovesASlabThatWasGivenBackToAnotherSize) {
  lease_book b;
  b.add(5, 1, slab, 0b11);
  std::uint64_t given = 0;
  b.give_back([](rid) { return true; }, 0,
              [&](rid, std::uint64_t, std::uint64_t mask) { given |= mask; });
  EXPECT_EQ(given, 0b11u);
  b.add(5, 2, slab, 0b01);
  EXPECT_EQ(b.take(5, 1), nullptr) << "the slab has slots of another size now";
  b.drop(5);
  b.add(6, 1, slab, 0b1);
  EXPECT_NE(b.take(6, 1), nullptr);
}

TEST(LeaseBook, AsksForMoreAndMore) {
  lease_book b;
  for (unsigned i = 0; i < lease_book::patience; ++i) EXPECT_EQ(b.wish(5, 1), 0u);
  std::uint64_t last = 0;
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t now = b.wish(5, 1);
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(last, lease_book::most_objects);
  for (int i = 0; i < 12; ++i) last = b.wish(5, 64);
  EXPECT_EQ(last, lease_book::most_bytes / 4096) << "large objects: fewer";
}

}  // namespace
}  // namespace quarry::cluster
