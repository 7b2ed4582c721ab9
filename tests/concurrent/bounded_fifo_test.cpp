// SPDX-License-Identifier: Apache-2.0
#include "support/on_backend.hpp"

#include <quarry/concurrent/bounded_fifo.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <vector>

namespace bounded_fifo_test {
namespace {

using quarry::bounded_fifo;
using quarry::fifo_message;
using quarry::testing::shared_array;
namespace simt = quarry::simt;

static_assert(std::is_trivially_copyable_v<bounded_fifo<8>> &&
              sizeof(bounded_fifo<8>) == sizeof(void*));
static_assert(fifo_message::unpack(fifo_message{7, 9}.packed()).number == 7);
static_assert(fifo_message::unpack(fifo_message{7, 9}.packed()).payload == 9);

template <std::uint32_t Capacity>
struct queue_here {
  typename bounded_fifo<Capacity>::storage where{};
  bounded_fifo<Capacity> queue{&where};
  explicit queue_here(std::uint32_t first = Capacity) { queue.initialise(0, 1, first); }
  std::vector<std::uint32_t> contents() const {
    std::vector<std::uint32_t> all;
    queue.visit([&](std::uint32_t v) { all.push_back(v); });
    return all;
  }
};

TEST(BoundedFifo, IsEmptyInitially) {
  const queue_here<4> here;
  std::uint32_t value = 99;
  EXPECT_FALSE(here.queue.dequeue(value));
  EXPECT_EQ(value, 99u) << "untouched";
  EXPECT_EQ(here.queue.size(), 0u);
  EXPECT_EQ(here.queue.check_invariants(), "");
}

TEST(BoundedFifo, ReturnsValuesInTheirOrder) {
  const queue_here<4> here;
  for (const std::uint32_t v : {30u, 10u, 20u}) EXPECT_TRUE(here.queue.enqueue(v));
  EXPECT_EQ(here.contents(), (std::vector<std::uint32_t>{30, 10, 20}));
  std::uint32_t value = 0;
  for (const std::uint32_t v : {30u, 10u, 20u}) {
    EXPECT_TRUE(here.queue.dequeue(value));
    EXPECT_EQ(value, v);
  }
  EXPECT_FALSE(here.queue.dequeue(value));
}

TEST(BoundedFifo, IsFullAtItsCapacityAndHasRoomAfterADequeue) {
  const queue_here<4> here;
  for (std::uint32_t v = 0; v < 4; ++v) EXPECT_TRUE(here.queue.enqueue(v));
  EXPECT_FALSE(here.queue.enqueue(4));
  EXPECT_EQ(here.queue.size(), 4u);
  std::uint32_t value = 99;
  EXPECT_TRUE(here.queue.dequeue(value));
  EXPECT_EQ(value, 0u);
  EXPECT_TRUE(here.queue.enqueue(5));
  EXPECT_FALSE(here.queue.enqueue(6));
  EXPECT_EQ(here.contents(), (std::vector<std::uint32_t>{1, 2, 3, 5}));
  EXPECT_EQ(here.queue.check_invariants(), "");
}

TEST(BoundedFifo, StoresAnyValue) {
  const queue_here<2> here;
  for (const std::uint32_t v : {0u, ~0u, 0x80000000u}) {
    std::uint32_t value = 1;
    EXPECT_TRUE(here.queue.enqueue(v));
    EXPECT_TRUE(here.queue.dequeue(value));
    EXPECT_EQ(value, v);
  }
}

TEST(BoundedFifo, IsInitialisedByManyLanesAsByOne) {
  queue_here<8> one;
  queue_here<8> many;
  many.where = {};
  for (std::uint64_t lane = 0; lane < 3; ++lane) many.queue.initialise(lane, 3);
  EXPECT_EQ(one.where.head, many.where.head);
  EXPECT_EQ(one.where.tail, many.where.tail);
  EXPECT_TRUE(std::equal(std::begin(one.where.slots), std::end(one.where.slots), many.where.slots));
}

template <std::uint32_t Capacity>
void expect_like_a_deque(std::uint32_t first) {
  const queue_here<Capacity> here(first);
  std::deque<std::uint32_t> model;
  simt::lane_random random(first + Capacity);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    std::uint32_t value = 0;
    if (random.below(2) == 0) {
      const bool room = model.size() < Capacity;
      ASSERT_EQ(here.queue.enqueue(i), room);
      if (room) model.push_back(i);
    } else if (model.empty()) {
      ASSERT_FALSE(here.queue.dequeue(value));
    } else {
      ASSERT_TRUE(here.queue.dequeue(value));
      ASSERT_EQ(value, model.front());
      model.pop_front();
    }
    ASSERT_EQ(here.contents(), std::vector<std::uint32_t>(model.begin(), model.end()));
    ASSERT_EQ(here.queue.check_invariants(), "");
  }
}

TEST(BoundedFifo, BehavesLikeADequeAtEveryCapacity) {
  expect_like_a_deque<1>(1);
  expect_like_a_deque<2>(2);
  expect_like_a_deque<4>(4);
  expect_like_a_deque<64>(64);
}

TEST(BoundedFifo, BehavesLikeADequeWhenNumbersWrapAround) {
  for (const std::uint32_t first :
       {0xffffffffu, 0xfffffffeu, 0xfffffff0u, 0xffffff00u, 0u, 0x7fffffffu}) {
    expect_like_a_deque<1>(first);
    expect_like_a_deque<4>(first);
    expect_like_a_deque<64>(first);
  }
}

TEST(BoundedFifo, DetectsViolatedInvariants) {
  queue_here<4> here;
  for (std::uint32_t v = 0; v < 4; ++v) here.queue.enqueue(v);
  here.where.head -= 1;
  EXPECT_NE(here.queue.check_invariants(), "") << "more messages than room";
  here.where.head += 1;
  EXPECT_EQ(here.queue.check_invariants(), "");
  here.where.slots[2] += std::uint64_t{4} << 32;
  EXPECT_NE(here.queue.check_invariants(), "") << "a message in the wrong place";
}

// Lanes pass cells through the queue. A cell is plain memory: only enqueue and dequeue order the
// accesses of two owners.
struct cells_in_turn {
  bounded_fifo<64> queue;
  std::uint32_t* cells;  // {id, ~id} per cell
  std::uint32_t* served;
  std::uint32_t rounds;

  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const auto name = static_cast<std::uint32_t>(lane + 1);
    bool intact = true;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      std::uint32_t number = 0;
      if (!queue.dequeue(number)) continue;
      std::uint32_t* cell = cells + 2 * number;
      intact = intact && (cell[0] ^ cell[1]) == ~std::uint32_t{0};
      cell[0] = name;
      cell[1] = ~name;
      simt::atomic_ref<std::uint32_t>(*served).add(1, simt::relaxed);
      intact = intact && cell[0] == name && cell[1] == ~name;
      intact = queue.enqueue(number) && intact;
    }
    return intact;
  }
};

struct filled_queue {
  bounded_fifo<64> queue;
  QUARRY_DEVICE void operator()() const {
    queue.initialise(0, 1, 0xffffffc0u);
    for (std::uint32_t i = 0; i < 64; ++i) queue.enqueue(i);
  }
};

TEST(BoundedFifoInDeviceCode, GivesACellToOneOwnerAtATime) {
  using queue = bounded_fifo<64>;
  shared_array<queue::storage> where(1);
  quarry::launch<quarry::testing::this_host>({1, 1}, filled_queue{queue(where.data())});
  std::vector<std::uint32_t> blank(128, 0);
  for (std::size_t i = 1; i < blank.size(); i += 2) blank[i] = ~0u;
  shared_array<std::uint32_t> cells(128);
  cells.from_host(blank);
  shared_array<std::uint32_t> served(1);

  EXPECT_EQ(quarry::testing::lanes_that_fail(
                {16, 128}, cells_in_turn{queue(where.data()), cells.data(), served.data(), 40}),
            0u);
  EXPECT_GT(served.to_host()[0], 0u);

  queue::storage after = where.to_host()[0];
  const queue left(&after);
  EXPECT_EQ(left.check_invariants(), "");
  std::vector<std::uint32_t> all;
  left.visit([&](std::uint32_t v) { all.push_back(v); });
  std::sort(all.begin(), all.end());
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(all.at(i), i) << "every cell is there once";
}

// Half of the lanes (producers) enqueue increasing numbers, and half (consumers) dequeue. Each
// consumer gets the numbers of each producer in increasing order, and all consumers together get
// each number once. The grid has one block, so that producers and consumers are resident together.
struct givers_and_takers {
  static constexpr std::uint32_t producers = 64;
  static constexpr std::uint32_t each = 100;
  bounded_fifo<16> queue;
  std::uint32_t* left;   // values that are not dequeued yet
  std::uint32_t* taken;  // how often each value was dequeued
  std::uint32_t* seen;   // [consumer][producer]: the last number plus 1

  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const auto me = static_cast<std::uint32_t>(lane) / 2;
    if (lane % 2 == 0) {
      for (std::uint32_t i = 0; i < each; ++i)
        while (!queue.enqueue(me * each + i)) simt::spin();
      return true;
    }
    bool rising = true;
    while (simt::atomic_ref<std::uint32_t>(*left).load(simt::relaxed) != 0) {
      std::uint32_t value = 0;
      if (!queue.dequeue(value)) {
        simt::spin();
        continue;
      }
      simt::atomic_ref<std::uint32_t>(taken[value]).add(1, simt::relaxed);
      simt::atomic_ref<std::uint32_t>(*left).sub(1, simt::relaxed);
      std::uint32_t& last = seen[me * producers + value / each];
      rising = rising && value % each + 1 > last;
      last = value % each + 1;
    }
    return rising;
  }
};

struct empty_queue {
  bounded_fifo<16> queue;
  QUARRY_DEVICE void operator()() const {
    queue.initialise(simt::global_thread(), simt::grid_threads());
  }
};

TEST(BoundedFifoInDeviceCode, KeepsTheOrderOfEachProducer) {
  using scene = givers_and_takers;
  using queue = bounded_fifo<16>;
  shared_array<queue::storage> where(1);
  quarry::launch<quarry::testing::this_host>({1, 32}, empty_queue{queue(where.data())});
  shared_array<std::uint32_t> left(1);
  left.from_host(std::vector<std::uint32_t>{scene::producers * scene::each});
  shared_array<std::uint32_t> taken(scene::producers * scene::each);
  shared_array<std::uint32_t> seen(scene::producers * scene::producers);
  EXPECT_EQ(quarry::testing::lanes_that_fail(
                {1, 2 * scene::producers},
                scene{queue(where.data()), left.data(), taken.data(), seen.data()}),
            0u);
  EXPECT_EQ(taken.to_host(), std::vector<std::uint32_t>(scene::producers * scene::each, 1));
}

}  // namespace
}  // namespace bounded_fifo_test
