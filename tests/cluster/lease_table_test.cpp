// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/lease_table.hpp"

#include <gtest/gtest.h>

#include <set>

namespace quarry::cluster::detail::lease_table_test {
namespace {

constexpr std::uint64_t slab = 0x1000'0000'0000;
constexpr rid five{5};
constexpr rid six{6};

TEST(LeaseTable, AllocatesEverySlotOnce) {
  lease_table b;
  b.add(five, 2, slab, 0b0101'0101);
  std::set<void*> got;
  for (int i = 0; i < 4; ++i) {
    void* p = b.allocate(five, 2);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(got.insert(p).second);
    EXPECT_EQ(b.size_of(p), 128u);
    EXPECT_EQ(b.region_of(p), five);
  }
  EXPECT_EQ(b.allocate(five, 2), nullptr);
  EXPECT_EQ(b.allocate(five, 1), nullptr) << "another size";
  EXPECT_EQ(b.allocate(six, 2), nullptr) << "another region";
  for (void* p : got) EXPECT_EQ(b.deallocate(p), lease_table::free_result::freed);
  for (void* p : got) EXPECT_EQ(b.deallocate(p), lease_table::free_result::already_free);
  EXPECT_NE(b.allocate(five, 2), nullptr);
}

TEST(LeaseTable, RejectsAddressesThatAreNotLeased) {
  lease_table b;
  b.add(five, 1, slab, 0b10);
  EXPECT_EQ(b.deallocate(reinterpret_cast<void*>(slab)), lease_table::free_result::not_leased);
  EXPECT_EQ(b.deallocate(reinterpret_cast<void*>(slab + 65)), lease_table::free_result::not_leased);
  EXPECT_EQ(b.deallocate(reinterpret_cast<void*>(slab + 4096)),
            lease_table::free_result::not_leased);
  EXPECT_EQ(b.size_of(reinterpret_cast<void*>(slab + 64)), 0u) << "a leased slot without an object";
}

TEST(LeaseTable, DoesNotReuseARevokedSlot) {
  lease_table b;
  b.add(five, 1, slab, 0b11);
  void* p = b.allocate(five, 1);
  b.revoke(p);
  EXPECT_EQ(b.deallocate(p), lease_table::free_result::not_leased);
  EXPECT_NE(b.allocate(five, 1), nullptr);
  EXPECT_EQ(b.allocate(five, 1), nullptr) << "the revoked slot is not allocated again";
}

TEST(LeaseTable, UsesTheSlabsOfADroppedRegionForAnotherRegion) {
  lease_table b;
  b.add(five, 1, slab, 0b11);
  b.allocate(five, 1);
  b.drop_region(five);
  EXPECT_EQ(b.allocate(five, 1), nullptr);
  b.add(six, 4, slab, 0b1);
  EXPECT_EQ(b.allocate(six, 4), reinterpret_cast<void*>(slab));
  EXPECT_EQ(b.allocate(five, 1), nullptr);
}

TEST(LeaseTable, UsesAReturnedSlabForAnotherSizeClass) {
  lease_table b;
  b.add(five, 1, slab, 0b11);
  std::uint64_t returned = 0;
  b.return_free_slots([](rid) { return true; }, 0,
                      [&](rid, std::uint64_t, std::uint64_t mask) { returned |= mask; });
  EXPECT_EQ(returned, 0b11u);
  b.add(five, 2, slab, 0b01);
  EXPECT_EQ(b.allocate(five, 1), nullptr) << "the slab has slots of another size class now";
  b.drop_region(five);
  b.add(six, 1, slab, 0b1);
  EXPECT_NE(b.allocate(six, 1), nullptr);
}

TEST(LeaseTable, DoublesTheLeaseUpToTheLimits) {
  lease_table b;
  for (unsigned i = 0; i < lease_table::min_misses; ++i) EXPECT_EQ(b.next_lease_slots(five, 1), 0u);
  std::uint64_t last = 0;
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t now = b.next_lease_slots(five, 1);
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(last, lease_table::max_lease_slots);
  for (int i = 0; i < 12; ++i) last = b.next_lease_slots(five, 64);
  EXPECT_EQ(last, lease_table::max_lease_bytes / 4096) << "fewer slots for large objects";
}

}  // namespace
}  // namespace quarry::cluster::detail::lease_table_test
