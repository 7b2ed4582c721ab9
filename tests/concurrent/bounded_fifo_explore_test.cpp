// SPDX-License-Identifier: Apache-2.0
// All results of the queue under many schedules are compared with a sequential queue. The same
// search must detect the errors of the published algorithm.
#include "concurrent/linearizability.hpp"
#include "mutants/published_fifo.hpp"

#include <quarry/concurrent/bounded_fifo.hpp>
#include <quarry/simt/explore.hpp>
#include <quarry/simt/simt.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>

namespace bounded_fifo_explore_test {
namespace {

using quarry::bounded_fifo;
using quarry::testing::queue_call;
using quarry::testing::recorder;
using quarry::testing::sequential_queue;
namespace simt = quarry::simt;
namespace mutants = quarry::mutants;

constexpr std::uint64_t none = ~std::uint64_t{0};

struct scene {
  std::uint32_t lanes = 3;
  std::uint32_t calls = 4;    // per lane
  std::uint32_t first = 100;  // the number before the first message
  simt::strategy how = simt::strategy::random;
};

/// The calls of a lane, drawn from the seed. A value identifies the lane that enqueues it.
template <class Fifo>
struct script {
  Fifo queue;
  recorder<queue_call>* log;
  std::uint64_t seed;
  std::uint32_t calls;

  void operator()() const {
    const std::uint64_t lane = simt::global_thread();
    simt::lane_random random(seed * 64 + lane);
    for (std::uint32_t i = 0; i < calls; ++i) {
      queue_call call{.enqueue = random.below(2) == 0,
                      .value = static_cast<std::uint32_t>(lane * 100 + i)};
      const std::size_t at = log->begin(lane);
      if (call.enqueue)
        call.answer = queue.enqueue(call.value);
      else
        call.answer = queue.dequeue(call.value);
      log->end(at, call);
    }
  }
};

/// Runs one schedule. Returns: a description of the failure, or an empty string.
template <class Fifo>
class exploration {
 public:
  explicit exploration(const scene& s) : scene_(s), log_(s.lanes * s.calls) {}

  std::string run(std::uint64_t seed) {
    const Fifo queue(&storage_);
    queue.initialise(0, 1, scene_.first);
    log_.clear();
    const simt::schedule how{.seed = seed,
                             .how = scene_.how,
                             .expected_steps = 5u * scene_.lanes * scene_.calls,
                             .step_limit = 10'000};
    const simt::outcome result =
        explorer_.run(how, {1, scene_.lanes}, script<Fifo>{queue, &log_, seed, scene_.calls});
    if (!result.ok()) return result.failure;
    if (!linearizable(log_.calls(), sequential_queue(Fifo::capacity)))
      return "not linearizable:\n" + to_text(log_.calls());
    return queue.check_invariants();
  }

  quarry::testing::history<queue_call> calls() const { return log_.calls(); }

  struct finding {
    std::uint64_t failures = 0;
    std::uint64_t first_seed = none;
    std::string what;
  };
  finding search(std::uint64_t schedules) {
    finding found;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      const std::string wrong = run(seed);
      if (wrong.empty()) continue;
      if (found.failures++ == 0) {
        found.first_seed = seed;
        found.what = wrong;
      }
    }
    return found;
  }

 private:
  scene scene_;
  typename Fifo::storage storage_{};
  recorder<queue_call> log_;
  simt::explorer explorer_;
};

template <class Fifo>
void expect_sound(const scene& s, std::uint64_t schedules) {
  const auto found = exploration<Fifo>(s).search(schedules);
  EXPECT_EQ(found.failures, 0u) << "first at seed " << found.first_seed << ": " << found.what;
}

// The rarest of these defects occurs in one schedule of fifty; a thousand schedules suffice.
template <mutants::fifo_form Form>
void expect_detected(const scene& s) {
  constexpr std::uint64_t within = 1000;
  constexpr std::uint64_t schedules = 30'000;
  exploration<mutants::published_fifo<2, Form>> explored(s);
  const auto found = explored.search(schedules);
  ASSERT_LT(found.first_seed, within)
      << found.failures << " failures in " << schedules << " schedules";
  EXPECT_EQ(explored.run(found.first_seed), found.what) << "a seed replays its schedule";
  ::testing::Test::RecordProperty("schedules", std::to_string(schedules));
  ::testing::Test::RecordProperty("failures", std::to_string(found.failures));
  ::testing::Test::RecordProperty("first_seed", std::to_string(found.first_seed));
}

TEST(BoundedFifoExplored, IsLinearizableInThreeHundredThousandSchedules) {
  expect_sound<bounded_fifo<2>>({}, 300'000);
}

TEST(BoundedFifoExplored, IsLinearizableWhenNumbersWrapAround) {
  expect_sound<bounded_fifo<2>>({.first = 0xfffffffdu}, 20'000);
}

TEST(BoundedFifoExplored, IsLinearizableWithACapacityOfOne) {
  expect_sound<bounded_fifo<1>>({}, 20'000);
}

TEST(BoundedFifoExplored, IsLinearizableWithACapacityOfFourAndMoreLanes) {
  expect_sound<bounded_fifo<4>>({.lanes = 5, .calls = 4}, 20'000);
}

TEST(BoundedFifoExplored, IsLinearizableUnderPrioritySchedules) {
  expect_sound<bounded_fifo<2>>({.how = simt::strategy::pct}, 20'000);
}

TEST(BoundedFifoExplored, ThePublishedAlgorithmWithAllCorrectionsIsLinearizable) {
  expect_sound<mutants::published_fifo<2, mutants::repaired>>({}, 20'000);
}

/// A value names a cell of plain memory that the enqueuing lane has written. A race detector checks
/// that the queue orders this write before the read of the dequeuing lane.
struct giver_and_taker {
  static constexpr std::uint32_t each = 4;
  bounded_fifo<4> queue;
  std::uint32_t* cells;
  recorder<queue_call>* log;

  void operator()() const {
    const auto lane = static_cast<std::uint32_t>(simt::global_thread());
    for (std::uint32_t i = 0; i < each; ++i) {
      const std::uint32_t cell = lane / 2 * each + i;
      std::uint32_t value = 0;
      if (lane % 2 == 0) {
        cells[cell] = cell + 1;
        queue.enqueue(cell);
      } else if (queue.dequeue(value) && cells[value] != value + 1) {
        log->end(log->begin(lane), {.enqueue = false, .value = value, .answer = true});
      }
    }
  }
};

TEST(BoundedFifoExplored, OrdersTheMemoryThatAValueNames) {
  simt::explorer explorer;
  recorder<queue_call> wrong(64);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    bounded_fifo<4>::storage where{};
    const bounded_fifo<4> queue(&where);
    queue.initialise(0, 1);
    std::array<std::uint32_t, 2 * giver_and_taker::each> cells{};
    const auto result = explorer.run({.seed = seed, .step_limit = 10'000}, {1, 4},
                                     giver_and_taker{queue, cells.data(), &wrong});
    ASSERT_EQ(result.failure + to_text(wrong.calls()), "") << "seed " << seed;
  }
}

TEST(PublishedFifo, IsDetected) { expect_detected<mutants::as_published>({}); }

TEST(PublishedFifo, IsDetectedWhenMessagesAreLoadedInHalves) {
  expect_detected<mutants::in_halves>({});
}

TEST(PublishedFifo, NeedsTheComparisonWithGreaterOrEqual) {
  expect_detected<mutants::repaired_but_equality>({});
}

TEST(PublishedFifo, NeedsASecondLoadOfTheHead) {
  expect_detected<mutants::repaired_but_old_head>({});
}

TEST(PublishedFifo, NeedsMessagesInASingleLoad) {
  expect_detected<mutants::repaired_but_halves>({});
}

TEST(PublishedFifo, NeedsTheLoadOfTheHeadBeforeTheTail) {
  expect_detected<mutants::repaired_but_tail_first>({});
}

// The consequence of the defect for an allocator: one block has two owners.
TEST(PublishedFifo, ReturnsAValueTwice) {
  exploration<mutants::published_fifo<2>> explored({});
  bool twice = false;
  for (std::uint64_t seed = 0; seed < 30'000 && !twice; ++seed) {
    if (explored.run(seed).empty()) continue;
    std::set<std::uint32_t> out;
    for (const auto& c : explored.calls())
      if (!c.call.enqueue && c.call.answer) twice |= !out.insert(c.call.value).second;
  }
  EXPECT_TRUE(twice);
}

// The cost of calls without contention: four and five accesses, as in the paper.
struct calls_in_turn {
  bounded_fifo<4> queue;
  std::uint32_t enqueues;
  std::uint32_t dequeues;
  void operator()() const {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < enqueues; ++i) queue.enqueue(i);
    for (std::uint32_t i = 0; i < dequeues; ++i) queue.dequeue(value);
  }
};

struct cost {
  std::uint64_t loads;
  std::uint64_t atomics;
  friend bool operator==(const cost&, const cost&) = default;
};

cost cost_of(std::uint32_t held, std::uint32_t enqueues, std::uint32_t dequeues) {
  bounded_fifo<4>::storage where{};
  const bounded_fifo<4> queue(&where);
  queue.initialise(0, 1);
  for (std::uint32_t i = 0; i < held; ++i) queue.enqueue(i);
  simt::explorer explorer;
  explorer.run({}, {1, 1}, calls_in_turn{queue, enqueues, dequeues});
  return {explorer.counts().loads, explorer.counts().atomics};
}

TEST(BoundedFifoCosts, FiveAccessesToEnqueue) { EXPECT_EQ(cost_of(2, 1, 0), (cost{3, 2})); }
TEST(BoundedFifoCosts, FourAccessesToDequeue) { EXPECT_EQ(cost_of(2, 0, 1), (cost{3, 1})); }
TEST(BoundedFifoCosts, ThreeAccessesToDequeueTheLast) { EXPECT_EQ(cost_of(1, 0, 1), (cost{2, 1})); }
TEST(BoundedFifoCosts, TwoLoadsIfTheQueueIsEmpty) { EXPECT_EQ(cost_of(0, 0, 1), (cost{2, 0})); }
TEST(BoundedFifoCosts, ThreeLoadsIfTheQueueIsFull) { EXPECT_EQ(cost_of(4, 1, 0), (cost{3, 0})); }

}  // namespace
}  // namespace bounded_fifo_explore_test
