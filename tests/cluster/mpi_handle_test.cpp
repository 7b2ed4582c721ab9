// SPDX-License-Identifier: Apache-2.0
// cluster::region, the handle, over real processes.
#include "mpi_main.hpp"

#include <algorithm>
#include <map>
#include <memory_resource>
#include <numeric>
#include <string>
#include <vector>

namespace quarry::cluster {
namespace {

using Handles = Cluster;

TEST_F(Handles, FreeTheirRegionAtTheEndOfTheScope) {
  rid id = root, child_id = root;
  {
    region r(w());
    region child = r.make_child();
    id = r.id();
    child_id = child.id();
    EXPECT_NE(r.alloc(10), nullptr);
    EXPECT_NE(child.alloc(10, 4096), nullptr);
    EXPECT_GT(r.pack().live_bytes, 0u);
  }
  EXPECT_EQ(w().free_region(id), region_status::stale_region);
  EXPECT_EQ(w().free_region(child_id), region_status::stale_region);
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
  const pair* p = r.make<pair>(1, 2);
  const pair* q = new (r) pair(3, 4);
  EXPECT_EQ(p->a + p->b + q->a + q->b, 10);
  EXPECT_THROW(r.make<pair>(1, 1), error);
  EXPECT_THROW(new (r) pair(1, 1), error);
  struct alignas(4096) wide {
    char c[4096];
  };
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(new (r) wide) % 4096, 0u);
  EXPECT_EQ(w().flush(), ok);
}

TEST_F(Handles, ResizeAndAllocateInBulk) {
  region r(w());
  auto* text = static_cast<char*>(r.realloc(nullptr, 16));
  std::snprintf(text, 16, "kept");
  text = static_cast<char*>(r.realloc(text, 100'000));
  EXPECT_STREQ(text, "kept");
  std::vector<void*> all(50);
  r.alloc_bulk(100, all);
  EXPECT_EQ(std::count(all.begin(), all.end(), nullptr), 0);
}

TEST_F(Handles, ThrowWhatIsWrong) {
  region r(w());
  region child = r.make_child();
  r = region(w());  // the old one is freed with the temporary
  EXPECT_THROW(child.alloc(8), region_error);
  EXPECT_THROW(child.make_child(), region_error);
  EXPECT_THROW(r.alloc(std::size_t{1} << 60), out_of_memory);
  EXPECT_THROW(r.send(count()), region_error);
  EXPECT_THROW(region(w(), ~rid{0}), region_error);
}

TEST_F(Handles, PassARegionToAnotherWorkerWhole) {
  if (me() > 1) return;
  if (me() == 0) {
    region r(w());
    auto* numbers = static_cast<int*>(r.alloc(4000 * sizeof(int)));
    std::iota(numbers, numbers + 4000, 0);
    const rid id = r.id();
    r.send(1);
    r.hand_over(1);
    EXPECT_EQ(r.id(), id);  // nothing is freed here
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
}  // namespace quarry::cluster
