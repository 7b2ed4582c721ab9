// SPDX-License-Identifier: Apache-2.0
#include "region/trie_model.hpp"

#include <gtest/gtest.h>

#include <random>

namespace trie_test {
namespace {

using namespace quarry;
using quarry::testing::counted_nodes;
using quarry::testing::trie_model;
using address_trie = trie<12, 36, counted_nodes>;

std::vector<std::uint8_t> random_script(std::uint64_t seed, std::size_t length) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> script(length);
  for (std::uint8_t& b : script) b = static_cast<std::uint8_t>(random());
  return script;
}

template <class Model>
class TrieModel : public ::testing::Test {};
using models = ::testing::Types<trie_model<0, 64>, trie_model<0, 33>, trie_model<6, 20>,
                                trie_model<12, 36>, trie_model<63, 1>, trie_model<0, 3>>;
TYPED_TEST_SUITE(TrieModel, models);

TYPED_TEST(TrieModel, AgreesWithAMapForRandomScripts) {
  TypeParam model;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    ASSERT_EQ(model.run(random_script(seed, 40'000)), "") << "seed " << seed;
  EXPECT_GT(model.operations(), 100'000u);
}

TEST(Trie, RejectsADuplicateKey) {
  counted_nodes nodes;
  address_trie t(nodes);
  EXPECT_EQ(t.insert(0x5000, 1), trie_insert::done);
  EXPECT_EQ(t.insert(0x5000, 2), trie_insert::duplicate);
  EXPECT_EQ(*t.find(0x5000), 1u);
}

TEST(Trie, RejectsKeysWithIgnoredBits) {
  counted_nodes nodes;
  address_trie t(nodes);
  EXPECT_EQ(t.insert(0x5001, 1), trie_insert::bad_key);
  EXPECT_EQ(t.insert(std::uint64_t{1} << 48, 1), trie_insert::bad_key);
  EXPECT_EQ(t.find(0x5001), nullptr);
  EXPECT_TRUE(t.empty());
}

TEST(Trie, RejectsTheValueZero) {
  counted_nodes nodes;
  address_trie t(nodes);
  EXPECT_EQ(t.insert(0x5000, 0), trie_insert::bad_key);
}

TEST(Trie, HoldsNoNodeWhenEmpty) {
  counted_nodes nodes;
  address_trie t(nodes);
  for (std::uint64_t k = 0; k < 1000; ++k) t.insert(k * k << 12, k + 1);
  EXPECT_GT(nodes.taken(), 1000u / 8);
  for (std::uint64_t k = 0; k < 1000; ++k) EXPECT_TRUE(t.erase(k * k << 12));
  EXPECT_EQ(nodes.taken(), 0u);
}

TEST(Trie, AllocatesAtMostOneNodePerLevelForAnEntry) {
  counted_nodes nodes;
  address_trie t(nodes);
  std::mt19937_64 random(7);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t before = nodes.taken();
    t.insert((random() & 0xf'ffff'ffffu) << 12, 1);
    ASSERT_LE(nodes.taken() - before, address_trie::levels);
  }
}

TEST(Trie, IsUnchangedIfAnInsertFindsNoNode) {
  for (std::uint64_t limit = 0; limit < address_trie::levels; ++limit) {
    counted_nodes nodes(limit);
    address_trie t(nodes);
    EXPECT_EQ(t.insert(0x7000, 1), trie_insert::no_node);
    EXPECT_EQ(nodes.taken(), 0u);
    EXPECT_EQ(t.check_invariants(), "");
    EXPECT_FALSE(t.begin());
  }
}

TEST(Trie, FindsTheNearestEntryAboveAndBelow) {
  counted_nodes nodes;
  address_trie t(nodes);
  for (std::uint64_t k : {0x1000u, 0x8000u, 0x10000u}) t.insert(k, k);
  EXPECT_EQ(t.at_or_above(0x1001).key(), 0x8000u);
  EXPECT_EQ(t.at_or_above(0x8000).key(), 0x8000u);
  EXPECT_EQ(t.at_or_below(0x7fff).key(), 0x1000u);
  EXPECT_EQ(t.at_or_below(~std::uint64_t{0}).key(), 0x10000u);
  EXPECT_FALSE(t.at_or_below(0xfff));
  EXPECT_FALSE(t.at_or_above(0x10001));
}

TEST(Trie, AllowsTwoIteratorsAtOnce) {
  counted_nodes nodes;
  address_trie t(nodes);
  for (std::uint64_t k = 0; k < 100; ++k) t.insert(k << 12, k + 1);
  auto slow = t.begin();
  std::uint64_t seen = 0;
  for (auto fast = t.begin(); fast; ++fast) {
    ++seen;
    if (seen % 2 == 0) ++slow;
  }
  EXPECT_EQ(seen, 100u);
  EXPECT_EQ(slow.key(), 50u << 12);
}

TEST(Trie, ReportsAnEmptyNode) {
  counted_nodes nodes;
  address_trie t(nodes);
  t.insert(0x3000, 1);
  std::uint64_t* value = t.find(0x3000);
  *value = 0;  // what no caller may do
  EXPECT_NE(t.check_invariants(), "");
  *value = 1;
}

}  // namespace
}  // namespace trie_test
