// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The number of schedules that tests explore. Sanitizers slow each step down, so fewer are run
/// there.

#include <quarry/check/explore_allocator.hpp>
#include <quarry/core/config.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace quarry {

inline constexpr bool race_detector = QUARRY_TSAN != 0;
inline constexpr std::uint64_t effort_divisor = QUARRY_TSAN ? 50 : QUARRY_ASAN ? 10 : 1;

inline constexpr std::uint64_t scaled(std::uint64_t schedules) {
  return schedules / effort_divisor;
}

/// Options for mutants and published defects. Race detectors ignore user memory: a failing run, or
/// a word that is both user data and a header, would cause reports.
inline exploration_options for_mutants(exploration_options options) {
  options.paint_hidden = true;
  return options;
}

/// Expects: the exploration finds a failure, and its message contains `text`.
template <allocator A>
exploration expect_failure(const exploration_options& options, const std::string& text) {
  const exploration found = allocator_explorer<A>(for_mutants(options)).run();
  if (!found.first) {
    ADD_FAILURE() << "no failure in " << found.schedules << " schedules";
    return found;
  }
  EXPECT_NE(found.first->text.find(text), std::string::npos) << found.first->text;
  ::testing::Test::RecordProperty("schedules", std::to_string(found.schedules));
  return found;
}

template <allocator A>
void expect_survival(const exploration_options& options) {
  const exploration found = allocator_explorer<A>(options).run();
  EXPECT_FALSE(found.first.has_value()) << "seed " << found.first->seed << ": " << found.first->text
                                        << "\nminimised: " << found.first->small_token << "\n"
                                        << found.first->small_script << found.first->small_text;
  EXPECT_EQ(found.schedules, options.schedules);
  EXPECT_GT(found.served, found.schedules);
}

}  // namespace quarry
