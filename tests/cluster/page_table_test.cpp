// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/page_table.hpp"

#include <gtest/gtest.h>

#include <random>

namespace quarry::cluster::detail::page_table_test {
namespace {

TEST(PageTable, AssignsTheLongestRunOfAtLeastTheMinimum) {
  page_table b;
  b.add({10, 4});
  b.add({20, 2});
  EXPECT_FALSE(b.assign(5, 9, {0, 100}, 1));
  const page_run four = b.assign(3, 9, {0, 100}, 1);
  EXPECT_EQ(four.first, 10u);
  EXPECT_EQ(four.count, 4u);
  EXPECT_FALSE(b.assign(1, 1, {0, 20}, 1)) << "outside the window";
  EXPECT_TRUE(b.assign(1, 1, {21, 100}, 2));
  EXPECT_EQ(b.find(21).holder, 2u);
  EXPECT_TRUE(b.find(20).known);
  EXPECT_EQ(b.find(20).holder, no_node);
  EXPECT_FALSE(b.find(30).known);
}

TEST(PageTable, ReleasesOnlyPagesOfTheirHolder) {
  page_table b;
  b.add({0, 8});
  b.assign(4, 4, {0, 8}, 1);
  EXPECT_FALSE(b.release({0, 4}, 2));
  EXPECT_FALSE(b.release({2, 4}, 1)) << "two of the pages are free";
  EXPECT_EQ(b.check_invariants(), "");
  EXPECT_TRUE(b.release({1, 2}, 1));
  EXPECT_EQ(b.free_pages(), 6u);
  EXPECT_EQ(b.check_invariants(), "");
}

/// Compares the table with an array that stores the holder of every page.
TEST(PageTable, AgreesWithAnArrayAfterRandomOperations) {
  constexpr std::uint64_t pages = 96;
  constexpr node_id elsewhere = 77;
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    page_table b;
    std::vector<node_id> holder_of(pages, elsewhere);
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t first = random() % pages;
      const page_run run{first, 1 + random() % std::min<std::uint64_t>(12, pages - first)};
      const node_id holder = static_cast<node_id>(random() % 3);
      const auto all = [&](node_id n) {
        return std::all_of(holder_of.begin() + static_cast<long>(run.first),
                           holder_of.begin() + static_cast<long>(run.end()),
                           [&](node_id w) { return w == n; });
      };
      const auto set = [&](page_run r, node_id n) {
        std::fill_n(holder_of.begin() + static_cast<long>(r.first), r.count, n);
      };
      switch (random() % 4) {
        case 0:
          if (all(elsewhere)) b.add(run), set(run, no_node);
          break;
        case 1: {
          const page_run got = b.assign(1 + random() % 3, run.count + 3, run, holder);
          for (std::uint64_t p = got.first; p < got.end(); ++p) {
            ASSERT_EQ(holder_of[p], no_node);
            ASSERT_GE(p, run.first);
            ASSERT_LT(p, run.end());
          }
          if (got) set(got, holder);
          break;
        }
        case 2:
          ASSERT_EQ(b.release(run, holder), all(holder));
          if (all(holder)) set(run, no_node);
          break;
        default: {
          const page_run got = b.remove_free(run.count);
          for (std::uint64_t p = got.first; p < got.end(); ++p) ASSERT_EQ(holder_of[p], no_node);
          if (got) set(got, elsewhere);
          break;
        }
      }
      ASSERT_EQ(b.check_invariants(), "");
      for (std::uint64_t p = 0; p < pages; ++p) {
        const page_table::lookup_result at = b.find(p);
        ASSERT_EQ(at.known ? at.holder : elsewhere, holder_of[p]);
      }
    }
  }
}

}  // namespace
}  // namespace quarry::cluster::detail::page_table_test
