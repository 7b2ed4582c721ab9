// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/handle.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace handle_test {
namespace {

using namespace quarry;

template <class Call>
region_status status_of(Call call) {
  try {
    call();
  } catch (const region_error& failure) {
    return failure.status();
  }
  return region_status::ok;
}

struct counted {
  explicit counted(std::vector<int>& into, int n) : log(&into), number(n) {}
  ~counted() { log->push_back(number); }
  std::vector<int>* log;
  int number;
};

TEST(Region, DestroysItsRegionAtTheEndOfItsScope) {
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

TEST(Region, DestroysItsChildren) {
  region_tree tree;
  auto parent = std::make_unique<region>(tree);
  region child = parent->create_child();
  void* p = child.allocate(64);
  parent.reset();
  EXPECT_THROW(child.allocate(8), region_error);
  child.deallocate(p);  // no effect
  EXPECT_THROW(child.create_child(), region_error);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(Region, RunsNoUnregisteredDestructor) {
  region_tree tree;
  std::vector<int> log;
  {
    region r(tree);
    new (r) counted(log, 1);
  }
  EXPECT_TRUE(log.empty());
}

TEST(Region, RunsRegisteredDestructorsInReverseOrderAndOfChildrenFirst) {
  region_tree tree;
  std::vector<int> log;
  {
    region parent(tree);
    parent.create<counted>(log, 1);
    region child = parent.create_child();
    child.create<counted>(log, 3);
    parent.create<counted>(log, 2);
    child.create<counted>(log, 4);
    child.release();
  }
  EXPECT_EQ(log, (std::vector<int>{4, 3, 2, 1}));
}

TEST(Region, ReleasesTheMemoryOfAnObjectWhoseConstructorThrows) {
  struct thrower {
    thrower() { throw 1; }
    ~thrower() {}
  };
  region_tree tree;
  region r(tree);
  EXPECT_THROW(r.create<thrower>(), int);
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

TEST(Region, AlignsObjectsAsRequested) {
  struct alignas(4096) page {
    char bytes[4096];
  };
  region_tree tree;
  region r(tree);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(new (r) page) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.allocate(10, 1 << 20)) % (1 << 20), 0u);
  EXPECT_THROW(r.allocate(10, 1 << 21), region_error);
}

TEST(Region, ThrowsTheReasonOfAFailure) {
  tree_options options;
  options.range = 2 << 20;
  region_tree tree(options);
  region r(tree);
  EXPECT_THROW(r.allocate(0), region_error);
  EXPECT_THROW(r.allocate(3 << 20), out_of_memory);
  EXPECT_THROW(
      {
        for (;;) r.allocate(4096);
      },
      std::bad_alloc);
  EXPECT_THROW(r.deallocate(&tree), region_error);
  region other(tree, root_region);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(Region, ReportsObjectsOfAnotherRegion) {
  region_tree tree;
  region a(tree), b(tree);
  void* p = a.allocate(64);
  EXPECT_EQ(b.try_deallocate(p), region_status::not_ours);
  EXPECT_EQ(a.try_deallocate(p), region_status::ok);
  EXPECT_EQ(a.try_deallocate(p), region_status::not_an_object);
}

TEST(Region, DestroysAnObjectBeforeItsRegion) {
  region_tree tree;
  std::vector<int> log;
  {
    region r(tree);
    r.create<counted>(log, 1);
    auto* second = r.create<counted>(log, 2);
    r.create<counted>(log, 3);
    r.destroy(second);
    EXPECT_EQ(log, (std::vector<int>{2}));
    EXPECT_THROW(r.destroy(second), region_error);
    r.destroy(r.create<int>(5));
    EXPECT_EQ(r.statistics().pool.objects, 2u);
  }
  EXPECT_EQ(log, (std::vector<int>{2, 3, 1}));
}

TEST(Region, RejectsTheDeallocationOfAnObjectWithADestructor) {
  region_tree tree;
  std::vector<int> log;
  struct alignas(256) aligned : counted {
    using counted::counted;
  };
  {
    region r(tree);
    for (counted* object :
         {r.create<counted>(log, 1), static_cast<counted*>(r.create<aligned>(log, 2))}) {
      EXPECT_EQ(r.try_deallocate(object), region_status::not_an_object);
      EXPECT_EQ(tree.deallocate(object), region_status::not_an_object);
      EXPECT_EQ(tree.reallocate(object, 10).status, region_status::not_an_object);
    }
    void* const plain = r.allocate(sizeof(counted) + 64);
    std::memset(plain, 0, sizeof(counted) + 64);
    EXPECT_THROW(r.destroy(static_cast<counted*>(plain)), region_error);
    EXPECT_THROW(r.destroy(reinterpret_cast<counted*>(static_cast<char*>(plain) + 32)),
                 region_error);
    region other(tree);
    EXPECT_THROW(other.destroy(r.create<counted>(log, 3)), region_error);
    EXPECT_TRUE(log.empty());
  }
  EXPECT_EQ(log, (std::vector<int>{3, 2, 1}));
}

/// A region whose constructor argument is destroyed while an object is constructed in it.
class RegionDiesInConstructor : public ::testing::Test {
 protected:
  static constexpr std::size_t size = 1000;
  /// Destroys the region of the object, fills another region, then writes to its own memory.
  struct intruder {
    intruder(region_tree& tree, region_id id, std::vector<unsigned char*>& others, region_id& other,
             int& count)
        : destroyed(count) {
      std::thread([&] { EXPECT_EQ(tree.destroy_region(id), region_status::ok); }).join();
      other = *tree.create_region(root_region, sharing::many_threads);
      for (int i = 0; i < 2000; ++i) {
        others.push_back(static_cast<unsigned char*>(*tree.allocate(other, size)));
        std::memset(others.back(), 0x55, size);
      }
      std::memset(bytes, 0xaa, sizeof(bytes));
    }
    ~intruder() { ++destroyed; }
    unsigned char bytes[size];
    int& destroyed;
  };
  struct trivial_intruder {
    trivial_intruder(region_tree& tree, region_id id, std::vector<unsigned char*>& others,
                     region_id& other, int& destroyed) {
      const intruder same(tree, id, others, other, destroyed);
      std::memset(bytes, 0xaa, sizeof(bytes));
    }
    unsigned char bytes[size];
  };

  template <class T>
  void run() {
    tree_options options;
    options.range = 64 << 20;
    region_tree tree(options);
    int destroyed = 0;
    region_id other = root_region;
    {
      region r(tree, root_region, sharing::many_threads);
      std::vector<unsigned char*> others;
      EXPECT_EQ(status_of([&] { r.create<T>(tree, r.id(), others, other, destroyed); }),
                region_status::stale_region);
      ASSERT_EQ(others.size(), 2000u);
      for (const unsigned char* block : others)
        for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(block[i], 0x55);
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(tree.check_invariants(), "");
    EXPECT_EQ(tree.destroy_region(other), region_status::ok);
    EXPECT_EQ(tree.regions(), 1u);
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(tree.check_invariants(), "");
  }
};

TEST_F(RegionDiesInConstructor, AndOtherRegionsKeepTheirBytes) { run<intruder>(); }
TEST_F(RegionDiesInConstructor, AndOtherRegionsKeepTheirBytesIfTheDestructorIsTrivial) {
  run<trivial_intruder>();
}

TEST(Region, IsDestroyedWhileThreadsCreateObjects) {
  region_tree tree;
  std::atomic<int> alive{0};
  struct tracked {
    explicit tracked(std::atomic<int>& n) : count(n) { ++count; }
    ~tracked() { --count; }
    std::atomic<int>& count;
    char bytes[200] = {};
  };
  for (int round = 0; round < 50; ++round) {
    region r(tree, root_region, sharing::many_threads);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        EXPECT_EQ(status_of([&] {
                    for (;;) r.destroy((r.create<tracked>(alive), r.create<tracked>(alive)));
                  }),
                  region_status::stale_region);
      });
    while (alive < 20) std::this_thread::yield();
    EXPECT_EQ(tree.destroy_region(r.id()), region_status::ok);
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(alive, 0);
  }
  EXPECT_EQ(tree.regions(), 1u);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(Region, IgnoresDeallocationsAfterItsEnd) {
  region_tree tree;
  region parent(tree);
  region child = parent.create_child();
  std::pmr::vector<int> numbers({1, 2, 3}, &child.resource());
  std::vector<int, region::allocator<int>> more({4, 5, 6}, child);
  void* const p = child.allocate(64);
  std::vector<int> log;
  auto* const object = child.create<counted>(log, 1);
  EXPECT_EQ(tree.destroy_region(parent.id()), region_status::ok);
  EXPECT_EQ(log, (std::vector<int>{1}));
  child.deallocate(p);
  child.destroy(object);
  EXPECT_EQ(child.try_deallocate(p), region_status::stale_region);
  EXPECT_EQ(log, (std::vector<int>{1}));
}

TEST(Region, LetsDestructorsDestroyOtherObjects) {
  region_tree tree;
  struct owner {
    explicit owner(region& r, std::vector<int>& log) : in(r), owned(r.create<counted>(log, 1)) {}
    ~owner() { in.destroy(owned); }
    region& in;
    counted* owned;
  };
  std::vector<int> log;
  {
    region r(tree);
    r.destroy(r.create<owner>(r, log));
    EXPECT_EQ(log, (std::vector<int>{1}));
    r.create<owner>(r, log);
  }
  EXPECT_EQ(log, (std::vector<int>{1, 1}));
}

TEST(Region, AllocatesAnArrayWithoutElements) {
  region_tree tree;
  region r(tree);
  EXPECT_NE(new (r) int[0], new (r) int[0]);
}

TEST(RegionResult, ThrowsIfAFailedCallHasNoValue) {
  region_tree tree;
  const region_result<region_id> failed = tree.create_region(null_region);
  EXPECT_EQ(status_of([&] { (void)*failed; }), region_status::stale_region);
  EXPECT_EQ(status_of([&] { (void)failed->value(); }), region_status::stale_region);
  EXPECT_EQ(status_of([&] { (void)*tree.create_region(null_region); }),
            region_status::stale_region);
  EXPECT_EQ(status_of([&] { (void)tree.allocate(null_region, 8).value(); }),
            region_status::stale_region);
}

TEST(Region, OwnsItsRegionAfterAMove) {
  region_tree tree;
  region a(tree);
  const region_id id = a.id();
  region b(std::move(a));
  EXPECT_EQ(b.id(), id);
  b.create<std::string>("a string that is too long for the object itself");
  region again = region::adopt(tree, b.release());
  EXPECT_EQ(again.id(), id);
  EXPECT_THROW(region::adopt(tree, region_id(4, 1000)), region_error);
}

TEST(Region, DestroysItsRegionWhenAnotherIsMoveAssigned) {
  region_tree tree;
  region a(tree), b(tree);
  const region_id of_a = a.id(), of_b = b.id();
  std::pmr::vector<int> numbers(&b.resource());
  a = std::move(b);
  EXPECT_EQ(tree.find(of_a), nullptr);
  EXPECT_EQ(a.id(), of_b);
  numbers.assign(1000, 7);
  EXPECT_EQ(*tree.region_of(numbers.data()), of_b);
  region& itself = a;
  a = std::move(itself);
  EXPECT_EQ(a.id(), of_b);
  b = region(tree);
  EXPECT_NE(b.allocate(8), nullptr);
  EXPECT_EQ(tree.regions(), 3u);
}

TEST(Region, ReportsCallsOnAMovedFromOrReleasedHandle) {
  auto tree = std::make_unique<region_tree>();
  region a(*tree), c(*tree);
  void* p = a.allocate(64);
  const region b(std::move(a));
  c.release();
  for (region* empty : {&a, &c}) {
    EXPECT_FALSE(*empty);
    EXPECT_EQ(status_of([&] { empty->allocate(8); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->allocate(8, 4096); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->deallocate(p); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->create<std::string>("text"); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->create_child(); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->resource(); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->reference(); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->statistics(); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->tree(); }), region_status::no_region);
    EXPECT_EQ(status_of([&] { empty->release(); }), region_status::no_region);
    empty->deallocate(nullptr);
  }
  EXPECT_TRUE(b);
}

TEST(Region, ReportsCallsOnAMovedFromHandleAfterItsTreeIsGone) {
  auto tree = std::make_unique<region_tree>();
  auto a = std::make_unique<region>(*tree);
  const auto b = std::make_unique<region>(std::move(*a)).release();
  delete b;
  tree.reset();
  EXPECT_EQ(status_of([&] { a->allocate(8); }), region_status::no_region);
  EXPECT_EQ(a->try_deallocate(&tree), region_status::no_region);
}

TEST(Region, KeepsItsResourceAndAllocatorsWhenItsHandleMoves) {
  region_tree tree;
  std::vector<region> regions;
  std::vector<std::pmr::map<int, std::pmr::string>> maps;
  std::vector<std::vector<int, region::allocator<int>>> numbers;
  for (int i = 0; i < 100; ++i) {
    regions.emplace_back(tree);  // moves the handles whenever the vector grows
    maps.emplace_back(&regions.back().resource());
    numbers.emplace_back(regions.back());
    for (std::size_t j = 0; j < regions.size(); ++j) {
      maps[j][i] = "a string that is too long for the object itself";
      numbers[j].push_back(i);
    }
  }
  for (std::size_t j = 0; j < regions.size(); ++j) {
    EXPECT_EQ(maps[j].size(), 100 - j);
    EXPECT_EQ(*tree.region_of(maps[j].begin()->second.data()), regions[j].id());
    EXPECT_EQ(*tree.region_of(numbers[j].data()), regions[j].id());
    EXPECT_EQ(maps[j].get_allocator().resource(), &regions[j].resource());
  }
  maps.clear();
  numbers.clear();
  for (const region& r : regions) EXPECT_EQ(r.statistics().pool.objects, 0u);
  EXPECT_EQ(tree.check_invariants(), "");
}

}  // namespace
}  // namespace handle_test
