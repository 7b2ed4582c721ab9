// SPDX-License-Identifier: Apache-2.0
/// What `quarry explore` reports about allocators with a deliberate fault.

#include "explore/run.hpp"
#include "faulty_bump.hpp"

#include <quarry/check/explore_allocator.hpp>

#include <gtest/gtest.h>

#include <string>

namespace quarry::tool::explore_test {
namespace {

exploration explore(const exploration_options& options) {
  return allocator_explorer<faulty_bump<>>(options).run();
}

exploration explored(defect d, std::uint64_t schedules = 2000) {
  const with_defect present(d);
  exploration_options options;
  options.schedules = schedules;
  return explore_in_portions(options, explore, [](const exploration&) {});
}

TEST(Explore, FindsNoFailureInASoundAllocator) {
  const exploration found = explored(defect::none);
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.schedules, 2000u);
  EXPECT_GT(found.served, 0u);
}

TEST(Explore, StopsAtTheFirstFailure) {
  const exploration found = explored(defect::overlaps);
  ASSERT_TRUE(found.first);
  EXPECT_LT(found.schedules, 2000u);
  EXPECT_EQ(found.schedules, found.first->seed);  // seeds count from 1
}

TEST(Explore, PrintsTheCommandThatReplaysAFailure) {
  const exploration found = explored(defect::overlaps);
  ASSERT_TRUE(found.first);
  const std::string text = failure_text("Faulty", *found.first);
  EXPECT_NE(text.find("seed " + std::to_string(found.first->seed)), std::string::npos) << text;
  EXPECT_NE(text.find("overlaps block"), std::string::npos) << text;
  EXPECT_NE(text.find("= malloc("), std::string::npos) << text;
  EXPECT_NE(text.find("quarry explore Faulty --replay " + found.first->small_token),
            std::string::npos)
      << text;
  EXPECT_NE(outcome_text("Faulty", found).find("FAILED"), std::string::npos);
}

TEST(Explore, FindsTheSameFailureInOnePortionAndInMany) {
  const exploration in_portions = explored(defect::misaligns);
  exploration_options options;
  options.schedules = 2000;
  const with_defect present(defect::misaligns);
  const exploration at_once = explore(options);
  ASSERT_TRUE(in_portions.first && at_once.first);
  EXPECT_EQ(in_portions.first->token, at_once.first->token);
  EXPECT_EQ(in_portions.steps, at_once.steps);
}

TEST(Explore, ReportsItsProgress) {
  exploration_options options;
  options.schedules = 5000;
  std::uint64_t last = 0;
  (void)explore_in_portions(options, explore, [&](const exploration& so_far) {
    EXPECT_GT(so_far.schedules, last);
    last = so_far.schedules;
  });
  EXPECT_EQ(last, 5000u);
}

TEST(Explore, StopsAtItsTimeLimit) {
  exploration_options options;
  options.schedules = ~std::uint64_t{0};
  options.seconds = 0.01;
  EXPECT_GT(explore_in_portions(options, explore, [](const exploration&) {}).schedules, 0u);
}

}  // namespace
}  // namespace quarry::tool::explore_test
