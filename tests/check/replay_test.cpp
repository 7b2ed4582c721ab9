// SPDX-License-Identifier: Apache-2.0
// A seed determines one run, a token reproduces a failure, and the minimiser shortens its script.
#include "defects.hpp"
#include "effort.hpp"

#include <mutants/broken_cells.hpp>
#include <mutants/repaired_cmalloc.hpp>
#include <quarry/pool/bump.hpp>

#include <algorithm>
#include <set>
#include <vector>

namespace quarry::replay_test {
namespace {

using defects::only_b;
using mutants::broken_cells;
using mutants::fault;
using mutants::repaired_cmalloc;

TEST(Replay, EqualSeedsGiveEqualRunsInAnyOrder) {
  allocator_explorer<repaired_cmalloc<>> one, other;
  std::set<std::uint64_t> hashes;
  std::vector<std::uint64_t> forwards, backwards;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    forwards.push_back(one.replay(one.trial_of(seed)).trace_hash);
  for (std::uint64_t seed = 200; seed >= 1; --seed)
    backwards.push_back(other.replay(other.trial_of(seed)).trace_hash);
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
  EXPECT_GT(std::set(forwards.begin(), forwards.end()).size(), 190u);
}

TEST(Replay, ASeedDoesNotDependOnWhereTheExplorationStarts) {
  const exploration_options options = for_mutants({.schedules = 5'000, .minimise = false});
  const auto first = allocator_explorer<only_b>(options).run().first;
  ASSERT_TRUE(first);
  exploration_options later = options;
  later.first_seed = first->seed;
  later.schedules = 1;
  const auto again = allocator_explorer<only_b>(later).run().first;
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text, first->text);
  EXPECT_EQ(again->token, first->token);
  EXPECT_EQ(again->steps, first->steps);
}

TEST(Replay, ATokenReproducesTheFailureInAnotherExplorer) {
  const auto first =
      allocator_explorer<only_b>(for_mutants({.pool_bytes = 512, .schedules = 5'000})).run().first;
  ASSERT_TRUE(first);
  allocator_explorer<only_b> fresh(for_mutants({}));  // with another pool size
  EXPECT_EQ(fresh.replay(first->token).failure, first->text);
  EXPECT_EQ(fresh.replay(first->small_token).failure, first->small_text);
  EXPECT_EQ(fresh.replay(first->small_token).trace_hash,
            fresh.replay(first->small_token).trace_hash);
}

TEST(Replay, ATokenIsReadAsItWasWritten) {
  trial t{.seed = 0xabcdef, .bounds = {9, 3, 7}, .pool_bytes = 640, .refill_one_in = 5};
  t.schedule = {.seed = 77,
                .how = simt::strategy::pct,
                .change_points = 2,
                .expected_steps = 99,
                .step_limit = 1234};
  t.keep = {true, false, false, true, true, false, true, false};
  EXPECT_EQ(trial::from_token(t.to_token()).to_token(), t.to_token());
  EXPECT_EQ(t.to_token(), "1-sabcdef-l9-b3-o7-m640-p5-d4d-c2-e99-x1234-k95");
  t.keep.clear();
  t.schedule.how = simt::strategy::random;
  EXPECT_EQ(t.to_token(), "1-sabcdef-l9-b3-o7-m640-p5-r4d-x1234");
  t.schedule.how = simt::strategy::lockstep;
  EXPECT_EQ(t.to_token(), "1-sabcdef-l9-b3-o7-m640-p5-w4d-x1234");
  EXPECT_EQ(trial::from_token(t.to_token()).to_token(), t.to_token());
}
TEST(Replay, AnInvalidTokenThrowsWithAReason) {
  for (const char* text : {"", "nonsense", "2-s1", "1-", "1-s", "1-sxyz", "1-l0", "1-l99999",
                           "1-q7", "1-s1-kxy", "1-m0", "1-m63", "1-m1073741825", "1-d1-c4097"}) {
    if (std::string(text) == "1-") continue;  // all defaults
    EXPECT_THROW(trial::from_token(text), error) << text;
  }
}

TEST(Replay, RejectsAPoolWithoutMemory) {
  EXPECT_THROW(allocator_explorer<bump>({.pool_bytes = 0}).run(), error);
  EXPECT_THROW(allocator_explorer<bump>().replay(trial{.pool_bytes = 0}), error);
}

TEST(Minimise, TheSmallScriptFailsAndIsNotLonger) {
  unsigned smaller = 0;
  for (const std::uint64_t seed : {1u, 1'001u, 2'001u, 3'001u}) {
    const auto first =
        allocator_explorer<only_b>(for_mutants({.schedules = 20'000, .first_seed = seed}))
            .run()
            .first;
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->small_text.empty());
    EXPECT_LE(first->small_operations, first->operations);
    smaller += first->small_operations * 2 <= first->operations;
  }
  EXPECT_GE(smaller, 3u);
}
TEST(Minimise, KeepsTwoRequestsIfTwoRequestsCauseTheFailure) {
  const auto found = expect_failure<broken_cells<fault::claims_in_two_steps>>({}, "overlaps");
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->small_operations, 2u) << found.first->small_script;
}

TEST(Trace, ContainsCallsStepsAndOutcome) {
  const auto first =
      allocator_explorer<broken_cells<fault::claims_in_two_steps>>(for_mutants({})).run().first;
  ASSERT_TRUE(first);
  allocator_explorer<broken_cells<fault::claims_in_two_steps>> explorer(for_mutants({}));
  std::string text;
  explorer.replay(first->small_token, [&](const std::string& line) { text += line + "\n"; });
  for (const char* part : {"pool of", " = malloc(", "calls malloc(", "load taken[0]: 0x0",
                           "store taken[0]: 0x1", "gets pool+0x0 (#", "failure: lane "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace quarry::replay_test
