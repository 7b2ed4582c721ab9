// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/oracle.hpp>
#include <quarry/check/script.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace quarry::script_test {
namespace {

constexpr abilities freeing = {.frees_one = true, .reuses = true};

template <class Visit>
void for_scripts(const abilities& can, std::uint64_t count, const Visit& visit) {
  allocation_script script;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    script.generate(seed, {}, 1024, can);
    visit(script);
  }
}

TEST(Script, IsTheSameForEqualSeeds) {
  allocation_script one, other;
  for (std::uint64_t seed = 1; seed < 100; ++seed) {
    one.generate(seed, {}, 1024, freeing);
    other.generate(seed + 1, {}, 512, freeing);
    other.generate(seed, {}, 1024, freeing);
    EXPECT_EQ(one.to_text(), other.to_text());
  }
}

TEST(Script, FreesOnlyBlocksThatALaneAllocates) {
  for_scripts(freeing, 500, [](const allocation_script& script) {
    for (std::uint32_t i = 0; i < script.size(); ++i) {
      const operation& op = script.at(i);
      ASSERT_LT(op.block, script.size());
      const bool names_a_malloc = !script.at(op.block).frees;
      ASSERT_TRUE(op.frees ? names_a_malloc || op.block == i : op.block == i);
    }
  });
}

TEST(Script, LetsLanesFreeBlocksOfOtherLanes) {
  unsigned own = 0, foreign = 0;
  for_scripts(freeing, 500, [&](const allocation_script& script) {
    for (std::uint32_t i = 0; i < script.size(); ++i)
      if (script.at(i).frees)
        ++(script.lane_of(i) == script.lane_of(script.at(i).block) ? own : foreign);
  });
  EXPECT_GT(own, 500u);
  EXPECT_GT(foreign, 500u);
}

TEST(Script, HasNoFreeForAllocatorsWithoutFree) {
  for_scripts({}, 200, [](const allocation_script& script) {
    for (std::uint32_t i = 0; i < script.size(); ++i) ASSERT_FALSE(script.at(i).frees);
  });
}

TEST(Script, DrawsEveryKindOfSizeAndGrid) {
  std::map<std::string, unsigned> seen;
  std::set<std::uint32_t> blocks;
  for_scripts(freeing, 2'000, [&](const allocation_script& script) {
    blocks.insert(script.shape().blocks);
    if (script.shape().threads > 32) ++seen["two warps"];
    for (std::uint32_t i = 0; i < script.size(); ++i) {
      const std::uint64_t n = script.at(i).size;
      if (script.at(i).frees) continue;
      ++seen[n == 0                      ? "zero"
             : n <= 64                   ? "small"
             : n <= 512                  ? "medium"
             : n <= 1024                 ? "most of the pool"
             : n < 4096                  ? "slightly more than the pool"
             : n < ~std::uint64_t{0} / 2 ? "more than 32 bits"
                                         : "near the largest integer"];
    }
  });
  EXPECT_EQ(seen.size(), 8u);
  for (const auto& [name, count] : seen) EXPECT_GT(count, 20u) << name;
  EXPECT_EQ(blocks.size(), 2u);
}

TEST(Script, CanBeReducedToAnySubset) {
  allocation_script script;
  script.generate(7, {}, 1024, freeing);
  keep_mask keep(script.size(), false);
  keep[1] = true;
  script.keep(keep);
  EXPECT_EQ(script.kept_count(), 1u);
  EXPECT_FALSE(script.kept(0));
  EXPECT_TRUE(script.kept(1));
  const std::string text = script.to_text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

class ShadowHeap : public ::testing::Test {
 protected:
  ShadowHeap() { begin(freeing); }
  void begin(const abilities& can) {
    shadow_.begin({memory_, sizeof memory_}, can, 1, 8, 4, false);
  }
  bool returns(std::uint32_t number, std::uint64_t offset, std::uint64_t n,
               std::uint32_t lane = 0) {
    shadow_.malloc_called(lane, n);
    return shadow_.malloc_returned(number, lane, memory_ + offset, n);
  }
  alignas(16) std::byte memory_[1024] = {};
  shadow_heap shadow_;
};

TEST_F(ShadowHeap, AcceptsAdjacentBlocksAndRejectsAnOverlapOfOneByte) {
  EXPECT_TRUE(returns(0, 64, 64));
  EXPECT_TRUE(returns(1, 128, 16));
  EXPECT_TRUE(returns(2, 48, 16));
  EXPECT_FALSE(returns(3, 32, 17, 3));
  EXPECT_EQ(shadow_.violation(),
            "lane 3: malloc(17) returned pool+0x20 for block #3, which overlaps block #2 of lane 0 "
            "(16 bytes at pool+0x30)");
}
TEST_F(ShadowHeap, ForgetsABlockThatIsRemoved) {
  EXPECT_TRUE(returns(0, 0, 100));
  EXPECT_EQ(shadow_.remove(0).begin, memory_);
  EXPECT_EQ(shadow_.remove(0).begin, nullptr);
  EXPECT_TRUE(returns(1, 0, 100));
}
TEST_F(ShadowHeap, FindsTheFirstByteThatChanged) {
  EXPECT_TRUE(returns(0, 16, 45));
  memory_[16 + 42] ^= std::byte{1};
  const auto block = shadow_.remove(0);
  EXPECT_FALSE(shadow_.still_painted(block, 0, 1));
  EXPECT_EQ(shadow_.violation(),
            "lane 1: byte 42 of block #0 of lane 0 (45 bytes at pool+0x10) was overwritten while "
            "the block was live");
}
TEST_F(ShadowHeap, RejectsABlockThatEndsBehindThePool) {
  EXPECT_TRUE(returns(0, 1008, 16));
  shadow_.remove(0);
  EXPECT_FALSE(returns(1, 1008, 17));
}
TEST_F(ShadowHeap, AcceptsThatAnOverwritingAllocatorReusesMemoryAfterACycle) {
  begin({.overwrites = true});
  EXPECT_TRUE(returns(0, 0, 256));
  EXPECT_TRUE(returns(1, 256, 256));
  // 768 bytes were requested. With unused space at the end of the pool they may fill a cycle of
  // 1024.
  EXPECT_TRUE(returns(2, 0, 256));
}
TEST_F(ShadowHeap, RejectsThatAnOverwritingAllocatorReusesMemoryWithinACycle) {
  begin({.overwrites = true});
  EXPECT_TRUE(returns(0, 0, 128));
  EXPECT_TRUE(returns(1, 128, 128));
  EXPECT_FALSE(returns(2, 0, 128));
}

}  // namespace
}  // namespace quarry::script_test
