// SPDX-License-Identifier: Apache-2.0
#include "apps/common/pairing.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace pairing_test {
namespace {

using namespace quarry::apps;

TEST(Pairing, PairsAllWorkersOnceAndEachAtMostOncePerStage) {
  for (unsigned n = 1; n <= 33; ++n) {
    std::set<std::pair<unsigned, unsigned>> met;
    for (unsigned stage = 0; stage < pairing_stages(n); ++stage)
      for (unsigned i = 0; i < n; ++i) {
        const unsigned j = partner(i, stage, n);
        if (j == no_partner) {
          EXPECT_EQ(n % 2, 1u);
          continue;
        }
        ASSERT_LT(j, n);
        EXPECT_NE(i, j);
        EXPECT_EQ(partner(j, stage, n), i);
        EXPECT_TRUE(i > j || met.emplace(i, j).second);
      }
    EXPECT_EQ(met.size(), std::size_t{n} * (n - 1) / 2);
  }
}

}  // namespace
}  // namespace pairing_test
