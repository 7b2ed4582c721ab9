// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/region_handle.hpp>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace {

using namespace quarry;

struct counted {
  explicit counted(std::vector<int>& into, int n) : log(&into), number(n) {}
  ~counted() { log->push_back(number); }
  std::vector<int>* log;
  int number;
};

TEST(Region, FreesItselfAtTheEndOfItsScope) {
  region_tree tree;
  region_id id;
  {
    region r(tree);
    id = r.id();
    new (r) int(5);
    EXPECT_EQ(r.statistics().pool.objects, 1u);
  }
  EXPECT_EQ(tree.find(id), nullptr);
  EXPECT_EQ(tree.regions(), 1u);
}

TEST(Region, TakesItsChildrenAlong) {
  region_tree tree;
  auto parent = std::make_unique<region>(tree);
  region child = parent->make_child();
  void* p = child.alloc(64);
  parent.reset();
  EXPECT_THROW(child.alloc(8), region_error);
  EXPECT_THROW(child.free(p), region_error);
  EXPECT_THROW(child.make_child(), region_error);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(Region, RunsNoDestructorThatWasNotRegistered) {
  region_tree tree;
  std::vector<int> log;
  {
    region r(tree);
    new (r) counted(log, 1);
  }
  EXPECT_TRUE(log.empty());
}

TEST(Region, RunsRegisteredDestructorsLatestFirstAndChildrenFirst) {
  region_tree tree;
  std::vector<int> log;
  {
    region parent(tree);
    parent.make<counted>(log, 1);
    region child = parent.make_child();
    child.make<counted>(log, 3);
    parent.make<counted>(log, 2);
    child.make<counted>(log, 4);
    child.release();
  }
  EXPECT_EQ(log, (std::vector<int>{4, 3, 2, 1}));
}

TEST(Region, KeepsNothingOfAnObjectWhoseConstructorThrows) {
  struct thrower {
    thrower() { throw 1; }
    ~thrower() {}
  };
  region_tree tree;
  region r(tree);
  EXPECT_THROW(r.make<thrower>(), int);
  EXPECT_THROW(new (r) thrower, int);
  EXPECT_EQ(r.statistics().pool.objects, 0u);
}

TEST(Region, HoldsStandardContainers) {
  region_tree tree;
  region r(tree);
  std::vector<int, region::allocator<int>> v(r);
  for (int i = 0; i < 10'000; ++i) v.push_back(i);
  EXPECT_EQ(v[9'999], 9'999);
  EXPECT_EQ(*tree.region_of(v.data()), r.id());
  std::pmr::map<int, std::pmr::string> m(&r.resource());
  for (int i = 0; i < 1000; ++i) m[i] = "a string that is too long for the object itself";
  EXPECT_EQ(*tree.region_of(m[500].data()), r.id());
  m.clear();
  v = decltype(v)(r);
  EXPECT_EQ(r.statistics().pool.objects, 0u);
}

TEST(Region, AlignsWhatAsksForIt) {
  struct alignas(4096) page {
    char bytes[4096];
  };
  region_tree tree;
  region r(tree);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(new (r) page) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.alloc(10, 1 << 20)) % (1 << 20), 0u);
  EXPECT_THROW(r.alloc(10, 1 << 21), region_error);
}

TEST(Region, SaysWhatWentWrong) {
  tree_options options;
  options.range = 2 << 20;
  region_tree tree(options);
  region r(tree);
  EXPECT_THROW(r.alloc(0), region_error);
  EXPECT_THROW(r.alloc(3 << 20), out_of_memory);
  EXPECT_THROW(
      {
        for (;;) r.alloc(4096);
      },
      std::bad_alloc);
  EXPECT_THROW(r.free(&tree), region_error);
  region other(tree, root_region);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(Region, RefusesObjectsOfAnotherRegion) {
  region_tree tree;
  region a(tree), b(tree);
  void* p = a.alloc(64);
  EXPECT_EQ(b.try_free(p), region_status::not_ours);
  EXPECT_EQ(a.try_free(p), region_status::ok);
  EXPECT_EQ(a.try_free(p), region_status::not_an_object);
}

TEST(Region, MovesAsAHandle) {
  region_tree tree;
  region a(tree);
  const region_id id = a.id();
  region b(std::move(a));
  EXPECT_EQ(b.id(), id);
  b.make<std::string>("a string that is too long for the object itself");
  region again = region::adopt(tree, b.release());
  EXPECT_EQ(again.id(), id);
  EXPECT_THROW(region::adopt(tree, region_id(4, 1000)), region_error);
}

}  // namespace
