// SPDX-License-Identifier: Apache-2.0
// Indices and runs are taken and put back in many schedules, with a list of owners beside the set.
#include <quarry/concurrent/index_set.hpp>
#include <quarry/simt/explore.hpp>
#include <quarry/simt/simt.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace index_set_explore_test {
namespace {

using namespace quarry;

/// A set in memory of its own.
class owned_set {
 public:
  explicit owned_set(std::uint32_t size)
      : words_(index_set::length(size)), set_(words_.data(), size) {}
  const index_set& set() const { return set_; }
  void refill() {
    words_.assign(words_.size(), 0);
    set_.fill(0, 1);
  }

 private:
  std::vector<std::uint64_t> words_;
  index_set set_;
};

/// Each lane takes single indices and runs at random, and puts all back at the end.
struct take_and_put {
  index_set set;
  std::uint32_t* owner;
  std::uint32_t longest;
  std::uint64_t seed;

  struct held {
    std::uint32_t first, length;
  };

  void operator()() const {
    simt::lane_random draw(seed * 1000 + simt::global_thread());
    held mine[8];
    unsigned count = 0;
    for (unsigned step = 0; step < 6; ++step) {
      if (count < 8 && draw.below(2) == 0) {
        std::uint32_t length = draw.below(3) == 0 ? 1 + draw.below(longest) : 1;
        std::uint32_t first = index_set::none;
        if (length == 1)
          first = set.take(draw.next(), 1 + draw.below(64));
        else if (draw.below(2) == 0)
          first = set.take_run(length, draw.next());
        else
          first = take_some(draw, length);
        if (first == index_set::none) continue;
        mine[count++] = {first, length};
        mark(mine[count - 1], 0, static_cast<std::uint32_t>(simt::global_thread() + 1));
      } else if (count > 0) {
        put(mine[--count]);
      }
    }
    while (count > 0) put(mine[--count]);
  }

  std::uint32_t take_some(simt::lane_random& draw, std::uint32_t& length) const {
    if (length > 64) length = 64;
    const std::uint32_t most = length;
    const std::uint32_t least = 1 + draw.below(length);
    const std::uint32_t first = set.take_some_in(draw.below((set.size() + 63) / 64), length, least,
                                                 draw.next(), draw.below(4));
    if (first != index_set::none && (length > most || length < least))
      simt::fail("a run is longer or shorter than it may be");
    return first;
  }
  void put(held h) const {
    mark(h, static_cast<std::uint32_t>(simt::global_thread() + 1), 0);
    if (h.length == 1)
      set.put(h.first);
    else
      set.put_run(h.first, h.length);
  }
  void mark(held h, std::uint32_t from, std::uint32_t to) const {
    bool right = true;
    {
      simt::host_section hidden;
      for (std::uint32_t i = h.first; i < h.first + h.length; ++i) {
        right = right && i < set.size() && owner[i] == from;
        if (right) owner[i] = to;
      }
    }
    if (!right) simt::fail("an index belongs to two lanes");
  }
};

void explore(std::uint32_t size, std::uint32_t longest, std::uint64_t schedules) {
  owned_set owned(size);
  std::vector<std::uint32_t> owner(size);
  for (std::uint64_t seed = 1; seed <= schedules; ++seed) {
    owned.refill();
    owner.assign(size, 0);
    simt::schedule how;
    how.seed = seed;
    how.how = seed % 2 == 0 ? simt::strategy::pct : simt::strategy::random;
    how.change_points = 3;
    how.expected_steps = 300;
    how.step_limit = 200'000;
    take_and_put kernel{owned.set(), owner.data(), longest, seed};
    simt::explorer run;
    const auto outcome = run.run(how, grid{1, 1 + static_cast<std::uint32_t>(seed % 6)}, kernel);
    ASSERT_TRUE(outcome.ok()) << "seed " << seed << ": " << outcome.failure;
    ASSERT_EQ(owned.set().count(), size) << "seed " << seed << ": indices were lost";
    ASSERT_TRUE(owned.set().hints_hold()) << "seed " << seed;
  }
}

TEST(ExploreIndexSet, LosesNothingInAWord) { explore(3, 3, 8000); }
TEST(ExploreIndexSet, LosesNothingInAFullWord) { explore(64, 40, 8000); }
TEST(ExploreIndexSet, LosesNothingAcrossWords) { explore(130, 100, 8000); }
TEST(ExploreIndexSet, LosesNothingAcrossHints) { explore(5000, 4500, 800); }

TEST(IndexSet, TakesTheLowestRun) {
  owned_set owned(1000);
  owned.refill();
  for (std::uint32_t i = 0; i < 100; ++i) owned.set().remove(i * 10);
  EXPECT_EQ(owned.set().find_run(9, 0), 1u);
  EXPECT_EQ(owned.set().find_run(10, 0), index_set::none);
  owned.set().put(500);
  EXPECT_EQ(owned.set().find_run(10, 0), 491u);
  EXPECT_EQ(owned.set().take_run(19, 7), 491u);
  EXPECT_EQ(owned.set().take_run(19, 7), index_set::none);
}

TEST(IndexSet, TakesRunsAtMultiplesOfTheirLength) {
  owned_set owned(128);
  owned.refill();
  for (const std::uint32_t i : {1u, 34u}) owned.set().remove(i);
  std::uint32_t n = 16;
  EXPECT_EQ(owned.set().take_some_in(0, n, 1, 0, 1), 16u);
  n = 16;
  EXPECT_EQ(owned.set().take_some_in(0, n, 16, 63, 1), 48u);
  n = 16;
  EXPECT_EQ(owned.set().take_some_in(0, n, 9, 0, 1), index_set::none)
      << "only shorter ones are left";
  n = 23;
  EXPECT_EQ(owned.set().take_some_in(0, n, 1, 0, 1), 8u);
  EXPECT_EQ(n, 8u);
  n = 64;
  EXPECT_EQ(owned.set().take_some_in(1, n, 64, 5, 1), 64u);
  EXPECT_EQ(n, 64u);
  n = 4;
  EXPECT_EQ(owned.set().take_some_in(0, n, 4, 0, 27), index_set::none) << "26 are left";
  EXPECT_EQ(owned.set().take_some_in(0, n, 4, 36, 0), 36u) << "without a look";
  EXPECT_EQ(owned.set().take_some_in(0, n, 4, 36, 0), index_set::none);
}

TEST(IndexSet, GivesAllToAnotherOne) {
  owned_set from(200);
  owned_set to(200);
  from.refill();
  for (const std::uint32_t i : {0u, 77u, 199u}) from.set().remove(i);
  from.set().move_to(to.set());
  EXPECT_EQ(from.set().count(), 0u);
  EXPECT_EQ(to.set().count(), 197u);
  EXPECT_FALSE(to.set().contains(77));
  EXPECT_TRUE(from.set().hints_hold() && to.set().hints_hold());
  EXPECT_EQ(from.set().take(1, 4096), index_set::none);
}

TEST(IndexSet, RefusesWhatItDoesNotHave) {
  owned_set owned(70);
  EXPECT_EQ(owned.set().take(1, 1), index_set::none) << "empty";
  owned.refill();
  EXPECT_EQ(owned.set().take_run(71, 0), index_set::none);
  EXPECT_EQ(owned.set().take_run(70, 0), 0u);
  EXPECT_EQ(owned.set().take(1, 1), index_set::none);
  owned.set().put_run(0, 70);
  EXPECT_EQ(owned.set().count(), 70u);
}

}  // namespace
}  // namespace index_set_explore_test
