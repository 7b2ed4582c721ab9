// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/packing.hpp>
#include <quarry/region/tree.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

namespace tree_test {
namespace {

using namespace quarry;

tree_options small_tree(std::uint64_t range = 16 << 20) {
  tree_options options;
  options.range = range;
  options.metadata = 8 << 20;
  options.threads = sharing::one_thread;
  return options;
}

TEST(RegionTree, AllocatesInTheRoot) {
  region_tree tree;
  const auto p = tree.allocate(root_region, 100);
  ASSERT_TRUE(p);
  std::memset(*p, 1, 100);
  EXPECT_EQ(tree.deallocate(*p), region_status::ok);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, DestroysARegionWithItsDescendants) {
  region_tree tree(small_tree());
  const region_id a = *tree.create_region(root_region);
  const region_id a1 = *tree.create_region(a);
  const region_id a2 = *tree.create_region(a1);
  const region_id b = *tree.create_region(root_region);
  void* in_a2 = *tree.allocate(a2, 192);
  void* in_b = *tree.allocate(b, 192);
  EXPECT_EQ(tree.regions(), 5u);
  EXPECT_EQ(tree.destroy_region(a), region_status::ok);
  EXPECT_EQ(tree.regions(), 2u);
  for (const region_id gone : {a, a1, a2}) {
    EXPECT_EQ(tree.allocate(gone, 8).status, region_status::stale_region);
    EXPECT_EQ(tree.create_region(gone).status, region_status::stale_region);
    EXPECT_EQ(tree.destroy_region(gone), region_status::stale_region);
  }
  EXPECT_EQ(tree.deallocate(in_a2), region_status::not_ours);
  EXPECT_EQ(tree.deallocate(in_b), region_status::ok);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, DistinguishesAStaleIdFromANewRegion) {
  region_tree tree(small_tree());
  std::vector<region_id> old;
  for (int i = 0; i < 10'000; ++i) {
    const region_id id = *tree.create_region(root_region);
    for (const region_id before : old) ASSERT_NE(before, id);
    if (i % 100 == 0) old.push_back(id);
    ASSERT_TRUE(tree.allocate(id, 64));
    ASSERT_EQ(tree.destroy_region(id), region_status::ok);
    ASSERT_EQ(tree.allocate(id, 64).status, region_status::stale_region);
  }
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, ReusesTheMemoryOfADestroyedRegion) {
  region_tree tree(small_tree());
  const std::uint64_t before = tree.free_slabs();
  const auto metadata = tree.metadata().objects;
  const region_id id = *tree.create_region(root_region);
  while (tree.allocate(id, 4096)) continue;
  EXPECT_LT(tree.free_slabs(), before / 100);
  EXPECT_EQ(tree.destroy_region(id), region_status::ok);
  EXPECT_EQ(tree.free_slabs(), before);
  EXPECT_LE(tree.metadata().objects, metadata + 2) << "the node stays, the rest does not";
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, FindsTheRegionOfAnyAddress) {
  region_tree tree(small_tree());
  const region_id a = *tree.create_region(root_region);
  const region_id b = *tree.create_region(a);
  auto* small = static_cast<std::byte*>(*tree.allocate(a, 192));
  auto* large = static_cast<std::byte*>(*tree.allocate(b, 1'000'000));
  EXPECT_EQ(*tree.region_of(small + 100), a);
  EXPECT_EQ(*tree.region_of(large + 999'999), b);
  EXPECT_EQ(tree.region_of(&tree).status, region_status::not_ours);
  EXPECT_EQ(tree.region_of(nullptr).status, region_status::not_ours);
  EXPECT_EQ(*tree.parent_of(b), a);
}

TEST(RegionTree, ReportsInvalidArgumentsByStatus) {
  region_tree tree(small_tree());
  const region_id id = *tree.create_region(root_region);
  auto* p = static_cast<std::byte*>(*tree.allocate(id, 192));
  EXPECT_EQ(tree.allocate(id, 0).status, region_status::zero_size);
  EXPECT_EQ(tree.allocate(id, ~std::size_t{0}).status, region_status::too_large);
  EXPECT_EQ(tree.allocate(id, (16 << 20) + 1).status, region_status::too_large);
  EXPECT_EQ(tree.allocate(id, 16 << 20).status, region_status::out_of_memory);
  EXPECT_EQ(tree.allocate(id, 8, 3).status, region_status::bad_alignment);
  EXPECT_EQ(tree.allocate(region_id(~std::uint64_t{0}), 8).status, region_status::stale_region);
  EXPECT_EQ(tree.allocate(region_id(1, 1), 8).status, region_status::stale_region);
  EXPECT_EQ(tree.allocate(region_id(2, 4000), 8).status, region_status::stale_region);
  EXPECT_EQ(tree.deallocate(p + 64), region_status::not_an_object);
  EXPECT_EQ(tree.deallocate(p + 1), region_status::not_an_object);
  EXPECT_EQ(tree.deallocate(&tree), region_status::not_ours);
  EXPECT_EQ(tree.deallocate(nullptr), region_status::ok);
  EXPECT_EQ(tree.destroy_region(root_region), region_status::is_root);
  EXPECT_EQ(tree.reallocate(p + 64, 10).status, region_status::not_an_object);
  EXPECT_EQ(tree.deallocate(p), region_status::ok);
  EXPECT_EQ(tree.deallocate(p), region_status::not_an_object);
  EXPECT_EQ(tree.reallocate(p, 10).status, region_status::not_an_object);
  std::array<void*, 100> out{};
  EXPECT_EQ(tree.allocate_bulk(id, 1 << 20, out), region_status::out_of_memory);
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](void* q) { return q == nullptr; }));
  EXPECT_EQ(tree.statistics(id)->pool.objects, 0u);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, ResizesInPlaceOrMovesTheContents) {
  region_tree tree(small_tree());
  const region_id a = *tree.create_region(root_region);
  const region_id b = *tree.create_region(root_region);
  auto* p = static_cast<char*>(*tree.reallocate(nullptr, 100, a));
  std::strcpy(p, "contents");
  EXPECT_EQ(*tree.reallocate(p, 120), p) << "within the slot";
  p = static_cast<char*>(*tree.reallocate(p, 40'000));
  EXPECT_STREQ(p, "contents");
  char* grown = static_cast<char*>(*tree.reallocate(p, 80'000));
  EXPECT_EQ(grown, p) << "the slabs behind it are free";
  char* moved = static_cast<char*>(*tree.reallocate(grown, 80'000, b));
  EXPECT_STREQ(moved, "contents");
  EXPECT_EQ(*tree.region_of(moved), b);
  EXPECT_EQ(tree.deallocate(grown), region_status::not_an_object);
  EXPECT_EQ(*tree.reallocate(moved, 0), nullptr);
  EXPECT_EQ(tree.statistics(b)->pool.objects, 0u);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, TrimsIdleRegionsBeforeAnAllocationFails) {
  region_tree tree(small_tree());
  std::vector<region_id> idle;
  for (int i = 0; i < 8; ++i) {
    const region_id id = *tree.create_region(root_region);
    std::vector<void*> all(250);
    ASSERT_EQ(tree.allocate_bulk(id, 4096, all), region_status::ok);
    for (void* p : all) ASSERT_EQ(tree.deallocate(p), region_status::ok);
    idle.push_back(id);
  }
  const region_id busy = *tree.create_region(root_region);
  std::uint64_t bytes_got = 0;
  while (tree.allocate(busy, 65'536)) bytes_got += 65'536;
  EXPECT_GT(bytes_got, 14u << 20) << "idle regions keep no more than the low watermark each";
  EXPECT_EQ(tree.check_invariants(), "");
  for (const region_id id : idle) EXPECT_TRUE(tree.allocate(id, 64));
}

TEST(RegionTree, GrowsARegionByLessWhenLittleMemoryIsLeft) {
  region_tree tree(small_tree());
  const region_id first = *tree.create_region(root_region);
  ASSERT_TRUE(tree.allocate(first, 64));
  EXPECT_EQ(tree.statistics(first)->held_slabs, 256u);
  const region_id filler = *tree.create_region(root_region);
  while (tree.free_slabs() > 64) ASSERT_TRUE(tree.allocate(filler, 65'536));
  const region_id last = *tree.create_region(root_region);
  ASSERT_TRUE(tree.allocate(last, 64));
  EXPECT_EQ(tree.statistics(last)->held_slabs, 32u);
}

TEST(RegionTree, TakesBackSlabsOfObjectsFreedOneByOne) {
  region_tree tree(small_tree(256 << 20));
  const region_id id = *tree.create_region(root_region);
  std::vector<void*> all(30'000);
  ASSERT_EQ(tree.allocate_bulk(id, 4096, all), region_status::ok);
  for (void* p : all) ASSERT_EQ(tree.deallocate(p), region_status::ok);
  EXPECT_LT(tree.statistics(id)->held_slabs, 3'000u);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, GrowsARegionIntoFreedChunksBeforeUnusedMemory) {
  region_tree tree(small_tree(64 << 20));
  const region_id id = *tree.create_region(root_region);
  std::vector<void*> all(256);
  ASSERT_EQ(tree.allocate_bulk(id, 65'536, all), region_status::ok);
  for (std::size_t i = 0; i < all.size(); i += 2) tree.deallocate(all[i]);
  EXPECT_GT(tree.trim(), 1000u) << "slabs in runs of 64 KiB, none as long as a page";
  const region_id other = *tree.create_region(root_region);
  for (int i = 0; i < 100; ++i) EXPECT_LT(*tree.allocate(other, 50'000), all.back());
  EXPECT_EQ(tree.check_invariants(), "");
}

/// The number of ranges of the third of four adjacent regions, each of eight pages, that grows by
/// six pages after the second and the fourth were destroyed.
std::size_t ranges_after_growth(growth_place growth) {
  tree_options options = small_tree(64 << 20);
  options.growth = growth;
  region_tree tree(options);
  std::vector<region_id> all;
  const auto add_pages = [&](region_id id, int pages) {
    for (int i = 0; i < pages; ++i) EXPECT_TRUE(tree.allocate(id, 1 << 20));
  };
  for (int i = 0; i < 4; ++i) {
    all.push_back(*tree.create_region(root_region));
    add_pages(all.back(), 8);
  }
  EXPECT_EQ(tree.destroy_region(all[1]), region_status::ok);
  EXPECT_EQ(tree.destroy_region(all[3]), region_status::ok);
  add_pages(all[2], 6);
  EXPECT_EQ(tree.check_invariants(), "");
  return pack(tree, all[2])->ranges.size();
}

TEST(RegionTree, GrowsARegionFromTheNearestFreeMemory) {
  EXPECT_EQ(ranges_after_growth(growth_place::nearest), 1u);
  EXPECT_EQ(ranges_after_growth(growth_place::lowest), 2u);
}

TEST(RegionTree, ReturnsFreeMemoryThatExceedsWhatItKeeps) {
  tree_options options = small_tree(64 << 20);
  options.keep = 1 << 20;
  region_tree tree(options);
  std::uint64_t dirty = 0;
  for (int i = 0; i < 20; ++i) {
    const region_id id = *tree.create_region(root_region);
    std::vector<void*> all(100);
    ASSERT_EQ(tree.allocate_bulk(id, 10'000 * (1 + i % 8), all), region_status::ok);
    EXPECT_EQ(tree.destroy_region(id), region_status::ok);
    EXPECT_LE(tree.dirty_slabs(), options.keep / 4096);
    dirty = std::max(dirty, tree.dirty_slabs());
  }
  EXPECT_GT(dirty, 0u);
  tree.trim();
  EXPECT_EQ(tree.dirty_slabs(), 0u);
}

TEST(RegionTree, FailsWhenMetadataIsFullAndRecovers) {
  tree_options options = small_tree();
  options.metadata = 2 << 20;
  region_tree tree(options);
  std::vector<region_id> all;
  for (;;) {
    const auto id = tree.create_region(root_region);
    if (!id) {
      EXPECT_EQ(id.status, region_status::out_of_memory);
      break;
    }
    all.push_back(*id);
    if (const auto p = tree.allocate(*id, 64); !p) {
      EXPECT_EQ(p.status, region_status::out_of_memory);
      break;
    }
    ASSERT_LT(all.size(), 10'000u);
  }
  EXPECT_EQ(tree.check_invariants(), "");
  for (const region_id id : all) EXPECT_EQ(tree.destroy_region(id), region_status::ok);
  EXPECT_EQ(tree.check_invariants(), "");
  EXPECT_TRUE(tree.allocate(*tree.create_region(root_region), 64));
}

/// Regions come and go, objects in them too; all ids and pointers ever seen stay in use as bad
/// ones.
TEST(RegionTree, KeepsItsInvariantsForRandomScripts) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::mt19937_64 random(seed);
    region_tree tree(small_tree(seed % 2 == 0 ? 8u << 20 : 128u << 20));
    struct object {
      void* p;
      region_id in;
      std::size_t size;
    };
    std::vector<region_id> ids{root_region};
    std::vector<object> objects;
    const auto alive = [&](region_id id) { return tree.find(id) != nullptr; };
    for (int step = 0; step < 60'000; ++step) {
      const std::uint64_t draw = random() % 100;
      const region_id id = ids[random() % ids.size()];
      if (draw < 3) {
        if (const auto fresh = tree.create_region(id)) ids.push_back(*fresh);
      } else if (draw < 5) {
        const bool was = alive(id) && id != root_region;
        ASSERT_EQ(tree.destroy_region(id) == region_status::ok, was);
        std::erase_if(objects, [&](const object& o) { return !alive(o.in); });
        if (ids.size() > 200) ids.resize(50);
      } else if (draw < 55) {
        static constexpr std::size_t sizes[] = {64, 192, 1024, 1536, 4096, 50048, 7, 300'000};
        const std::size_t n = sizes[random() % 8];
        const auto p = tree.allocate(id, n);
        if (p) {
          ASSERT_TRUE(alive(id));
          ASSERT_EQ(*tree.region_of(*p), id);
          std::memset(*p, static_cast<int>(id.value()), n < 64 ? n : 64);
          objects.push_back({*p, id, n});
        } else if (!alive(id)) {
          ASSERT_EQ(p.status, region_status::stale_region);
        } else {
          ASSERT_EQ(p.status, region_status::out_of_memory);
        }
      } else if (!objects.empty()) {
        object& o = objects[random() % objects.size()];
        ASSERT_EQ(*static_cast<unsigned char*>(o.p), static_cast<unsigned char>(o.in.value()));
        if (draw < 95) {
          ASSERT_EQ(tree.deallocate(o.p), region_status::ok);
          ASSERT_NE(tree.deallocate(o.p), region_status::ok);
          o = objects.back();
          objects.pop_back();
        } else if (const auto q = tree.reallocate(o.p, o.size + random() % 5000, id)) {
          o = {*q, id, o.size};
          std::memset(o.p, static_cast<int>(id.value()), 1);
        }
      }
      if (step % 5000 == 0) {
        ASSERT_EQ(tree.check_invariants(), "") << seed << " step " << step;
      }
    }
    ASSERT_EQ(tree.check_invariants(), "");
  }
}

TEST(RegionTree, LetsEachThreadUseItsOwnRegions) {
  tree_options options = small_tree(512 << 20);
  options.threads = sharing::many_threads;
  options.metadata = 64 << 20;
  region_tree tree(options);
  std::vector<std::thread> threads;
  std::atomic<int> faults{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 20; ++round) {
        const region_id id = *tree.create_region(root_region);
        std::vector<void*> mine;
        for (int i = 0; i < 2000; ++i) {
          const auto p = tree.allocate(id, random() % 5000 + 1);
          if (!p) continue;
          std::memset(*p, static_cast<int>(t), 1);
          mine.push_back(*p);
          if (i % 3 == 0) {
            std::swap(mine[random() % mine.size()], mine.back());
            if (*static_cast<unsigned char*>(mine.back()) != t) ++faults;
            if (tree.deallocate(mine.back()) != region_status::ok) ++faults;
            mine.pop_back();
          }
        }
        if (tree.destroy_region(id) != region_status::ok) ++faults;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(tree.check_invariants(), "");
  EXPECT_EQ(tree.regions(), 1u);
}

TEST(RegionTree, LetsThreadsShareARegionAndFreeEachOthersObjects) {
  tree_options options = small_tree(256 << 20);
  options.threads = sharing::many_threads;
  region_tree tree(options);
  const region_id id = *tree.create_region(root_region, sharing::many_threads);
  std::array<std::atomic<void*>, 256> table{};
  std::vector<std::thread> threads;
  std::atomic<int> faults{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 20'000; ++i) {
        void* fresh = tree.allocate(id, random() % 500 + 1).value();
        if (fresh == nullptr) ++faults;
        void* old = table[random() % table.size()].exchange(fresh);
        if (tree.deallocate(old) != region_status::ok) ++faults;
      }
    });
  for (std::thread& t : threads) t.join();
  for (auto& p : table) EXPECT_EQ(tree.deallocate(p), region_status::ok);
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(tree.statistics(id)->pool.objects, 0u);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, DestroysASharedRegionExactlyOnce) {
  tree_options options = small_tree(64 << 20);
  options.threads = sharing::many_threads;
  region_tree tree(options);
  for (int round = 0; round < 200; ++round) {
    const region_id id = *tree.create_region(root_region, sharing::many_threads);
    std::atomic<int> freed{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          const auto p = tree.allocate(id, 64);
          if (!p && p.status != region_status::stale_region) ++wrong;
          const auto below = tree.create_region(id);
          if (!below && below.status != region_status::stale_region) ++wrong;
        }
        const region_status s = tree.destroy_region(id);
        if (s == region_status::ok)
          ++freed;
        else if (s != region_status::stale_region)
          ++wrong;
      });
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(freed, 1);
    ASSERT_EQ(wrong, 0);
    ASSERT_EQ(tree.regions(), 1u);
  }
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST(RegionTree, RejectsInvalidAddressRanges) {
  const auto reason = [](void* where, std::uint64_t range, bool addresses_only) -> std::string {
    tree_options options;
    options.where = where;
    options.range = range;
    options.addresses_only = addresses_only;
    try {
      const region_tree tree(options);
    } catch (const error& failure) {
      return failure.what();
    }
    return "accepted";
  };
  // Addresses that are free, also under a sanitizer, which occupies many.
  tree_options any;
  any.range = 64 << 20;
  const auto start =
      reinterpret_cast<std::uintptr_t>(std::make_unique<region_tree>(any)->table().base());
  const auto at = [](std::uintptr_t a) { return reinterpret_cast<void*>(a); };
  for (const bool addresses_only : {false, true}) {
    EXPECT_EQ(reason(at(start), 64 << 20, addresses_only), "accepted");
    for (const std::uintptr_t where : {~std::uintptr_t{0}, start + 4096, start + (1 << 19)})
      EXPECT_NE(reason(at(where), 64 << 20, addresses_only).find("multiple of 1 MiB"),
                std::string::npos);
    EXPECT_NE(reason(at(~std::uintptr_t{0} << 20), 64 << 20, addresses_only).find("last address"),
              std::string::npos);
    EXPECT_NE(reason(at(start), 0, addresses_only).find("not 0"), std::string::npos);
    EXPECT_NE(reason(at(start), ~std::uint64_t{0}, addresses_only).find("18446744073709551615"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tree_test
