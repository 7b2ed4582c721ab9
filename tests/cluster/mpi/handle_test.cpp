// SPDX-License-Identifier: Apache-2.0
// cluster::region, the handle, over real processes.
#include "main.hpp"

#include <algorithm>
#include <map>
#include <memory_resource>
#include <numeric>
#include <string>
#include <vector>

namespace quarry::cluster::handle_test {
namespace {

using Handles = Cluster;

TEST_F(Handles, FreeTheirRegionAtTheEndOfTheScope) {
  rid id = root, child_id = root;
  {
    region r(w());
    region child = r.create_child();
    id = r.id();
    child_id = child.id();
    EXPECT_NE(r.allocate(10), nullptr);
    EXPECT_NE(child.allocate(10, 4096), nullptr);
    EXPECT_GT(r.pack().live_bytes, 0u);
  }
  EXPECT_EQ(w().destroy_region(id), region_status::stale_region);
  EXPECT_EQ(w().destroy_region(child_id), region_status::stale_region);
}

TEST_F(Handles, LetStandardContainersLiveInARegion) {
  region r(w());
  std::pmr::map<int, std::pmr::string> m(&r.resource());
  for (int i = 0; i < 500; ++i)
    m.emplace(i, "a string that is too long to lie inside itself " + std::to_string(i));
  EXPECT_EQ(m.at(77), "a string that is too long to lie inside itself 77");
  std::vector<int, region::allocator<int>> v(r);
  v.resize(10'000);
  std::iota(v.begin(), v.end(), 0);
  EXPECT_EQ(std::accumulate(v.begin(), v.end(), 0), 49'995'000);
  EXPECT_GE(r.pack().live_bytes, 40'000u);
  m.clear();
  EXPECT_EQ(w().flush(), ok);
}

TEST_F(Handles, MakeObjectsAndTakeThemBackWhenAConstructorThrows) {
  struct pair {
    int a, b;
    pair(int x, int y) : a(x), b(y) {
      if (x == y) throw error("equal");
    }
  };
  region r(w());
  const pair* p = r.create<pair>(1, 2);
  const pair* q = new (r) pair(3, 4);
  EXPECT_EQ(p->a + p->b + q->a + q->b, 10);
  EXPECT_THROW(r.create<pair>(1, 1), error);
  EXPECT_THROW(new (r) pair(1, 1), error);
  struct alignas(4096) wide {
    char c[4096];
  };
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(new (r) wide) % 4096, 0u);
  EXPECT_EQ(w().flush(), ok);
}

TEST_F(Handles, ResizeAndAllocateInBulk) {
  region r(w());
  auto* text = static_cast<char*>(r.reallocate(nullptr, 16));
  std::snprintf(text, 16, "kept");
  text = static_cast<char*>(r.reallocate(text, 100'000));
  EXPECT_STREQ(text, "kept");
  std::vector<void*> all(50);
  r.allocate_bulk(100, all);
  EXPECT_EQ(std::count(all.begin(), all.end(), nullptr), 0);
}

TEST_F(Handles, ThrowWhatIsWrong) {
  region r(w());
  region child = r.create_child();
  r = region(w());  // destroys the region that r owned, and its child
  EXPECT_THROW(child.allocate(8), region_error);
  EXPECT_THROW(child.create_child(), region_error);
  EXPECT_THROW(r.allocate(std::size_t{1} << 60), out_of_memory);
  EXPECT_THROW(r.send(count()), region_error);
  EXPECT_THROW(region(w(), rid{~std::uint64_t{0}}), region_error);
}

TEST_F(Handles, KeepTheirResourceWhenTheyMove) {
  std::vector<region> regions;
  std::vector<std::pmr::vector<int>> numbers;
  for (int i = 0; i < 20; ++i) {
    regions.emplace_back(w());  // moves the handles whenever the vector grows
    numbers.emplace_back(&regions.back().resource());
    for (auto& v : numbers) v.resize(v.size() + 50, i);
  }
  EXPECT_EQ(numbers[0].size(), 1000u);
  EXPECT_EQ(numbers[0].back(), 19);
  const region first = std::move(regions[0]);
  EXPECT_THROW(regions[0].allocate(8), region_error);
  EXPECT_THROW(regions[0].resource(), region_error);
  numbers[0].resize(100'000);
  EXPECT_GE(first.pack().live_bytes, 400'000u);
  numbers.clear();
  EXPECT_EQ(w().flush(), ok);
}

TEST_F(Handles, PassARegionToAnotherWorkerWhole) {
  if (me() > 1) return;
  if (me() == 0) {
    region r(w());
    auto* numbers = static_cast<int*>(r.allocate(4000 * sizeof(int)));
    std::iota(numbers, numbers + 4000, 0);
    r.send(1);
    r.hand_over(1);
    EXPECT_FALSE(r);  // worker 1 owns the region
    EXPECT_THROW(r.allocate(8), region_error);
  } else {
    const rid id = region::receive(w(), 0);
    const region r = region::take_over(w(), 0);
    EXPECT_EQ(r.id(), id);
    const packed_region p = r.pack();
    ASSERT_FALSE(p.ranges.empty());
    const auto* numbers = reinterpret_cast<const int*>(p.ranges[0].address);
    EXPECT_EQ(numbers[3999], 3999);
  }
}

}  // namespace
}  // namespace quarry::cluster::handle_test
