// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/packing.hpp>

#include <gtest/gtest.h>

#include <random>

namespace packing_test {
namespace {

using namespace quarry;

tree_options one_thread() {
  tree_options options;
  options.range = 256 << 20;
  options.metadata = 16 << 20;
  options.threads = sharing::one_thread;
  return options;
}

bool covers(const packed_region& packed, const void* p, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(p);
  for (const packed_range& r : packed.ranges)
    if (r.address <= first && first + size <= r.address + r.size) return true;
  return false;
}

void expect_in_order(const packed_region& packed) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < packed.ranges.size(); ++i) {
    sum += packed.ranges[i].size;
    if (i > 0) {
      ASSERT_LT(packed.ranges[i - 1].address + packed.ranges[i - 1].size, packed.ranges[i].address);
    }
  }
  EXPECT_EQ(sum, packed.packed_bytes);
}

TEST(Packing, ReturnsNoRangeForAnEmptyRegion) {
  region_tree tree(one_thread());
  const region_id id = *tree.create_region(root_region);
  EXPECT_TRUE(pack(tree, id)->ranges.empty());
  EXPECT_EQ(tree.deallocate(*tree.allocate(id, 64)), region_status::ok);
  EXPECT_TRUE(pack(tree, id)->ranges.empty());
  EXPECT_EQ(pack(tree, region_id(2, 77)).status, region_status::stale_region);
}

TEST(Packing, ReturnsOneRangeForARegionThatOnlyGrew) {
  region_tree tree(one_thread());
  const region_id id = *tree.create_region(root_region);
  std::vector<void*> all(100'000);
  ASSERT_EQ(tree.allocate_bulk(id, 192, all), region_status::ok);
  const packed_region packed = pack(tree, id).value();
  EXPECT_EQ(packed.ranges.size(), 1u);
  EXPECT_EQ(packed.live_bytes, 100'000u * 192);
  EXPECT_LT(packed.bytes_per_live_byte(), 1.001);
}

TEST(Packing, CoversEveryLiveObjectOfTheRegionAndItsDescendants) {
  region_tree tree(one_thread());
  std::mt19937_64 random(3);
  const region_id top = *tree.create_region(root_region);
  std::vector<region_id> ids{top, *tree.create_region(top), *tree.create_region(top)};
  ids.push_back(*tree.create_region(ids[1]));
  const region_id other = *tree.create_region(root_region);
  struct object {
    void* p;
    std::size_t size;
  };
  std::vector<object> live;
  for (int i = 0; i < 30'000; ++i) {
    static constexpr std::size_t sizes[] = {64, 192, 1024, 1536, 4096, 50048, 6000, 20'000};
    if (random() % 100 < 55 || live.empty()) {
      const std::size_t n = sizes[random() % 8];
      const auto p = tree.allocate(ids[random() % ids.size()], n);
      if (p) live.push_back({*p, n});
      if (i % 7 == 0) (void)tree.allocate(other, n);
    } else {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_EQ(tree.deallocate(live.back().p), region_status::ok);
      live.pop_back();
    }
  }
  const packed_region packed = pack(tree, top).value();
  expect_in_order(packed);
  for (const object& o : live) ASSERT_TRUE(covers(packed, o.p, o.size));
  EXPECT_GE(packed.packed_bytes, packed.live_bytes);
  EXPECT_LT(packed.bytes_per_live_byte(), 2.0);
  // No range holds a slab of the other region.
  for (const packed_range& r : packed.ranges)
    for (std::size_t at = 0; at < r.size; at += 4096)
      ASSERT_NE(*tree.region_of(r.address + at), other);
}

TEST(Packing, OmitsTheSlabsOfFreedObjects) {
  region_tree tree(one_thread());
  const region_id id = *tree.create_region(root_region);
  std::vector<void*> all(90);
  ASSERT_EQ(tree.allocate_bulk(id, 4096, all), region_status::ok);
  for (std::size_t i = 30; i < 60; ++i) ASSERT_EQ(tree.deallocate(all[i]), region_status::ok);
  const packed_region packed = pack(tree, id).value();
  EXPECT_EQ(packed.packed_bytes, 60u * 4096);
  EXPECT_EQ(packed.ranges.size(), 2u);
}

}  // namespace
}  // namespace packing_test
