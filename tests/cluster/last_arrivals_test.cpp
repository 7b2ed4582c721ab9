// SPDX-License-Identifier: Apache-2.0
#include "cluster/simulation/last_arrivals.hpp"

#include <gtest/gtest.h>

namespace quarry::cluster::testing::last_arrivals_test {
namespace {

using detail::last_arrivals;

TEST(LastArrivals, KeepTheMessagesOfAPairInOrder) {
  last_arrivals all;
  EXPECT_EQ(all.add(1, 2, 5.0, 0), 5.0);
  EXPECT_EQ(all.add(1, 2, 3.0, 0), 5.0) << "not before the message sent earlier";
  EXPECT_EQ(all.add(2, 1, 3.0, 0), 3.0) << "another pair";
  EXPECT_EQ(all.add(1, 2, 6.0, 0), 6.0);
}

TEST(LastArrivals, ForgetPairsWhoseMessagesHaveArrived) {
  last_arrivals all;
  EXPECT_EQ(all.add(0, 1, 1e9, 0), 1e9);
  for (node_id from = 0; from < 200; ++from)
    for (node_id to = 0; to < 200; ++to) {
      const double now = from * 200.0 + to;
      all.add(1000 + from, 1000 + to, now + 10, now);
    }
  EXPECT_LE(all.size(), 2000u);
  EXPECT_EQ(all.add(0, 1, 50'000, 40'000), 1e9) << "a message in transit is not forgotten";
}

}  // namespace
}  // namespace quarry::cluster::testing::last_arrivals_test
