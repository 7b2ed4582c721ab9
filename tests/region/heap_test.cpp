// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/heap.hpp>

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace heap_test {
namespace {

using namespace quarry;

TEST(RegionHeap, FollowsTheRulesOfMallocAndRealloc) {
  region_heap<> heap;
  void* nothing = heap.allocate(0);
  EXPECT_NE(nothing, nullptr);
  EXPECT_EQ(heap.deallocate(nothing), region_status::ok);
  EXPECT_EQ(heap.deallocate(nullptr), region_status::ok);
  EXPECT_EQ(heap.allocate(~std::size_t{0}), nullptr);
  auto* p = static_cast<char*>(heap.reallocate(nullptr, 10));
  std::strcpy(p, "text");
  p = static_cast<char*>(heap.reallocate(p, 100'000));
  EXPECT_STREQ(p, "text");
  EXPECT_GE(heap.usable_size(p), 100'000u);
  EXPECT_EQ(heap.reallocate(p + 64, 10), nullptr);
  EXPECT_EQ(heap.deallocate(p + 64), region_status::not_an_object);
  EXPECT_EQ(heap.deallocate(p), region_status::ok);
  EXPECT_EQ(heap.deallocate(p), region_status::not_an_object);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(heap.allocate(100, 65'536)) % 65'536, 0u);
  EXPECT_EQ(heap.tree().check_invariants(), "");
}

TEST(RegionHeap, FreesObjectsOfOtherThreads) {
  region_heap<> heap;
  std::vector<std::atomic<unsigned char*>> table(1000);
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 20'000; ++i) {
        const std::size_t n = random() % 3000 + 2;
        auto* p = static_cast<unsigned char*>(heap.allocate(n));
        if (p == nullptr) {
          ++faults;
          continue;
        }
        p[0] = p[1] = static_cast<unsigned char>(n);
        unsigned char* old = table[random() % table.size()].exchange(p);
        if (old == nullptr) continue;
        if (old[0] != old[1] || heap.deallocate(old) != region_status::ok) ++faults;
      }
    });
  for (std::thread& t : threads) t.join();
  for (auto& p : table) EXPECT_EQ(heap.deallocate(p), region_status::ok);
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(heap.tree().check_invariants(), "");
}

}  // namespace
}  // namespace heap_test
