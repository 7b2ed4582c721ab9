// SPDX-License-Identifier: Apache-2.0
// Regions that travel between real processes, with their pointers.
#include "main.hpp"

#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace quarry::cluster::transfer_test {
namespace {

struct item {
  item* next;
  item* all_after;  // two ahead: some more pointers to check
  std::uint64_t value;
  char padding[40];
};

/// A list whose nodes lie in a region and regions inside it.
struct list {
  rid region = root;
  item* head = nullptr;
};

list make_list(unsigned length, std::uint64_t seed, unsigned inner_regions = 3) {
  list l;
  l.region = got(w().create_region(root));
  std::vector<rid> places{l.region};
  for (unsigned i = 0; i < inner_regions; ++i)
    places.push_back(got(w().create_region(places.back())));
  item* next = nullptr;
  for (unsigned i = length; i-- > 0;) {
    const std::size_t size = sizeof(item) + (i % 7) * 100;
    auto* n = static_cast<item*>(got(w().allocate(places[i % places.size()], size)));
    *n = {next, next == nullptr ? nullptr : next->next, seed + i, {}};
    std::memset(n->padding, static_cast<int>(i), sizeof n->padding);
    next = n;
  }
  l.head = next;
  return l;
}

/// How many nodes from here are as make_list made them.
unsigned intact(const item* head, std::uint64_t seed) {
  unsigned i = 0;
  for (const item* n = head; n != nullptr; n = n->next, ++i) {
    if (n->value != seed + i || n->padding[39] != static_cast<char>(i)) return i;
    if (n->all_after != (n->next == nullptr ? nullptr : n->next->next)) return i;
  }
  return i;
}

region_status send(unsigned peer, const list& l) {
  void* head = l.head;
  return w().send(peer, std::span(&l.region, 1), std::span(&head, 1));
}
list receive(unsigned peer) {
  list l;
  void* head = nullptr;
  const region_status s = w().receive(peer, std::span(&l.region, 1), std::span(&head, 1));
  EXPECT_EQ(s, ok);
  l.head = static_cast<item*>(head);
  return l;
}

using Transfers = Cluster;

TEST_F(Transfers, KeepThePointersOfAListThatGoesRound) {
  list l;
  if (me() == 0) {
    l = make_list(3000, 77);
    ASSERT_EQ(send(1, l), ok);
    const list back = receive(count() - 1);
    EXPECT_EQ(back.region, l.region);
    EXPECT_EQ(back.head, l.head);
    EXPECT_EQ(back.head->value, 77 + count() - 1);
    back.head->value = 77;
    EXPECT_EQ(intact(back.head, 77), 3000u);
    EXPECT_EQ(w().destroy_region(l.region), ok);
  } else {
    l = receive(me() - 1);
    ASSERT_EQ(l.head->value, 77 + me() - 1);
    l.head->value = 77;
    EXPECT_EQ(intact(l.head, 77), 3000u);
    l.head->value = 77 + me();
    EXPECT_EQ(send(next_worker(), l), ok);
  }
}

TEST_F(Transfers, OfAllWorkersAtOnceToTheNext) {
  // Even ones send first; with an odd number of workers the last waits, which is well too.
  const list mine = make_list(500, 1000 * me());
  list theirs;
  if (me() % 2 == 0) {
    EXPECT_EQ(send(next_worker(), mine), ok);
    theirs = receive(worker_before());
  } else {
    theirs = receive(worker_before());
    EXPECT_EQ(send(next_worker(), mine), ok);
  }
  EXPECT_EQ(intact(theirs.head, 1000 * worker_before()), 500u);
  EXPECT_EQ(intact(mine.head, 1000 * me()), 500u);
  w().barrier();
  EXPECT_EQ(w().destroy_region(mine.region), ok);
}

TEST_F(Transfers, ExchangeTwoRegionsInOneCall) {
  const unsigned peer = me() ^ 1;
  if (peer >= count()) return;
  const list mine = make_list(800, 5 + me());
  rid theirs = root;
  EXPECT_EQ(w().exchange(peer, std::span(&mine.region, 1), std::span(&theirs, 1)), ok);
  EXPECT_NE(theirs, root);
  EXPECT_NE(theirs, mine.region);
  EXPECT_GT(got(w().pack(theirs)).live_bytes, 800 * sizeof(item));
  EXPECT_EQ(intact(mine.head, 5 + me()), 800u);
  // Freed when the peer, too, has looked.
  rid again = theirs;
  EXPECT_EQ(w().exchange(peer, std::span(&mine.region, 1), std::span(&again, 1)), ok);
  EXPECT_EQ(w().destroy_region(mine.region), ok);
}

TEST_F(Transfers, MoveManySmallRangesAndFewLargeOnes) {
  if (me() > 1) return;
  constexpr unsigned objects = 3000;
  if (me() == 0) {
    const rid r = got(w().create_region(root));
    std::vector<void*> all;
    for (unsigned i = 0; i < objects; ++i) {
      const std::size_t size = i % 100 == 0 ? 500'000 : 4096;
      all.push_back(got(w().allocate(r, size)));
      std::memset(all.back(), static_cast<int>(i), size);
    }
    for (unsigned i = 1; i < objects; i += 2) EXPECT_EQ(w().deallocate(all[i]), ok);  // holes
    void* table = got(w().allocate(r, objects * sizeof(void*)));
    std::copy(all.begin(), all.end(), static_cast<void**>(table));
    EXPECT_EQ(w().flush(), ok);
    EXPECT_EQ(w().send(1, std::span(&r, 1), std::span(&table, 1)), ok);
    rid done = root;
    EXPECT_EQ(w().receive(1, std::span(&done, 1)), ok);
    EXPECT_EQ(w().destroy_region(r), ok);
  } else {
    rid r = root;
    void* table = nullptr;
    ASSERT_EQ(w().receive(0, std::span(&r, 1), std::span(&table, 1)), ok);
    for (unsigned i = 0; i < objects; i += 2) {
      const auto* p = static_cast<unsigned char**>(table)[i];
      const std::size_t size = i % 100 == 0 ? 500'000 : 4096;
      ASSERT_EQ(p[0], static_cast<unsigned char>(i));
      ASSERT_EQ(p[size / 2], static_cast<unsigned char>(i));
      ASSERT_EQ(p[size - 1], static_cast<unsigned char>(i));
    }
    const rid done = got(w().create_region(root));
    EXPECT_EQ(w().send(0, std::span(&done, 1)), ok);
    EXPECT_EQ(w().destroy_region(done), ok);
  }
}

/// By hand, for it needs some 5 GiB: --gtest_also_run_disabled_tests --gtest_filter='*TwoGiB'
TEST_F(Transfers, DISABLED_OfMoreThanTwoGiB) {
  if (me() > 1) return;
  constexpr std::size_t size = (std::size_t{5} << 29) + 12'345;  // 2.5 GiB and some
  const auto mark = [](std::size_t at) { return at * 0x9e37'79b9'7f4a'7c15u; };
  if (me() == 0) {
    const rid r = got(w().create_region(root));
    void* p = got(w().allocate(r, size));
    for (std::size_t at = 0; at + 8 <= size; at += 4096)
      *reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(p) + at) = mark(at);
    const double start = MPI_Wtime();
    ASSERT_EQ(w().send(1, std::span(&r, 1), std::span(&p, 1)), ok);
    std::printf("  %.2f GB/s\n", static_cast<double>(size) / (MPI_Wtime() - start) * 1e-9);
    rid done = root;
    EXPECT_EQ(w().receive(1, std::span(&done, 1)), ok);
    EXPECT_EQ(w().destroy_region(r), ok);
  } else {
    rid r = root;
    void* p = nullptr;
    ASSERT_EQ(w().receive(0, std::span(&r, 1), std::span(&p, 1)), ok);
    for (std::size_t at = 0; at + 8 <= size; at += 4096)
      ASSERT_EQ(*reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(p) + at), mark(at));
    const rid done = got(w().create_region(root));
    EXPECT_EQ(w().send(0, std::span(&done, 1)), ok);
    EXPECT_EQ(w().destroy_region(done), ok);
  }
}

TEST_F(Transfers, OfAnEmptyRegionArrive) {
  if (me() > 1) return;
  if (me() == 0) {
    const rid r = got(w().create_region(root));
    EXPECT_EQ(w().send(1, std::span(&r, 1)), ok);
    EXPECT_EQ(w().hand_over(1, std::span(&r, 1)), ok);
  } else {
    rid r = root;
    EXPECT_EQ(w().receive(0, std::span(&r, 1)), ok);
    EXPECT_EQ(w().take_over(0, std::span(&r, 1)), ok);
    EXPECT_EQ(w().destroy_region(r), ok);
  }
}

using Mismatches = Cluster;

TEST_F(Mismatches, AreToldToBothSidesAndNothingMoves) {
  if (me() > 1) return;
  const unsigned peer = 1 - me();
  const list l = make_list(50, me());
  void* head = l.head;
  rid two[2] = {};
  void* object = nullptr;
  constexpr region_status bad = region_status::mismatch;
  if (me() == 0) {
    EXPECT_EQ(w().send(peer, std::span(&l.region, 1)), bad);                       // two expected
    EXPECT_EQ(w().send(peer, std::span(&l.region, 1)), bad);                       // another one
    EXPECT_EQ(w().send(peer, std::span(&l.region, 1), std::span(&head, 1)), bad);  // no object
    EXPECT_EQ(w().send(peer, std::span(&l.region, 1), std::span(&head, 1)), bad);  // another
    EXPECT_EQ(w().send(peer, std::span(&l.region, 1)), bad);                       // take_over
    EXPECT_EQ(w().hand_over(peer, std::span(&l.region, 1)), bad);                  // receive
    EXPECT_EQ(w().send(peer, std::span(&l.region, 1)), ok);
  } else {
    EXPECT_EQ(w().receive(peer, two), bad);
    rid mine = l.region;
    EXPECT_EQ(w().receive(peer, std::span(&mine, 1)), bad);
    EXPECT_EQ(w().receive(peer, std::span(two).first(1)), bad);
    void* other = l.head;
    EXPECT_EQ(w().receive(peer, std::span(two).first(1), std::span(&other, 1)), bad);
    EXPECT_EQ(w().take_over(peer, std::span(two).first(1)), bad);
    EXPECT_EQ(w().receive(peer, std::span(two).first(1)), bad);
    EXPECT_EQ(two[0], root);
    EXPECT_EQ(object, nullptr);
    EXPECT_EQ(w().receive(peer, std::span(two).first(1)), ok);
  }
  EXPECT_EQ(intact(l.head, me()), 50u);
  if (me() == 0) {  // freed only when the peer has it
    rid done = root;
    EXPECT_EQ(w().receive(1, std::span(&done, 1)), ok);
  } else {
    EXPECT_EQ(w().send(0, std::span(&l.region, 1)), ok);
  }
  EXPECT_EQ(w().destroy_region(l.region), ok);
}

TEST_F(Mismatches, OfStaleRegionsAndObjectsAreTold) {
  if (me() > 1) return;
  const rid stale = got(w().create_region(root));
  EXPECT_EQ(w().destroy_region(stale), ok);
  rid any = root;
  if (me() == 0) {
    EXPECT_EQ(w().send(1, std::span(&stale, 1)), region_status::stale_region);
    int no_object = 0;
    void* p = &no_object;
    EXPECT_EQ(w().send(1, {}, std::span(&p, 1)), region_status::not_ours);
  } else {
    EXPECT_EQ(w().receive(0, std::span(&any, 1)), region_status::stale_region);
    void* p = nullptr;
    EXPECT_EQ(w().receive(0, {}, std::span(&p, 1)), region_status::not_ours);
  }
}

using HandOvers = Cluster;

TEST_F(HandOvers, MoveAListRoundAndLeaveNothingBehind) {
  for (unsigned round = 0; round < 3; ++round) {
    rid r = root;
    item* head = nullptr;
    if (me() == 0) {
      const list l = make_list(2000, 9 + round);
      // The head is told by a plain send of a region of its own.
      r = l.region;
      head = l.head;
    }
    const auto tell = [&](unsigned peer) {
      const rid note = got(w().create_region(root));
      void* box = got(w().allocate(note, sizeof(void*)));
      *static_cast<item**>(box) = head;
      EXPECT_EQ(w().send(peer, std::span(&note, 1), std::span(&box, 1)), ok);
      EXPECT_EQ(w().destroy_region(note), ok);
      EXPECT_EQ(w().hand_over(peer, std::span(&r, 1)), ok);
    };
    const auto hear = [&](unsigned peer) {
      rid note = root;
      void* box = nullptr;
      ASSERT_EQ(w().receive(peer, std::span(&note, 1), std::span(&box, 1)), ok);
      head = *static_cast<item**>(box);
      ASSERT_EQ(w().take_over(peer, std::span(&r, 1)), ok);
    };
    if (me() != 0) hear(worker_before());
    ASSERT_EQ(intact(head, 9 + round), 2000u);
    tell(next_worker());
    if (!w().shares_memory_with(next_worker())) std::puts("  (copied: no memory is shared)");
    if (me() == 0) {
      hear(worker_before());
      EXPECT_EQ(intact(head, 9 + round), 2000u);
      EXPECT_EQ(w().destroy_region(r), ok);
    }
    w().barrier();
  }
}

TEST_F(HandOvers, BackAndForthOfAGrowingRegion) {
  if (me() > 1) return;
  const unsigned peer = 1 - me();
  rid r = me() == 0 ? got(w().create_region(root)) : root;
  std::uint64_t* table = nullptr;
  constexpr unsigned rounds = 40;
  if (me() == 0) table = static_cast<std::uint64_t*>(got(w().allocate(r, 8 * (rounds + 2))));
  for (unsigned round = 0; round < rounds; ++round) {
    if (round % 2 == me()) {
      auto* p = static_cast<std::uint64_t*>(got(w().allocate(r, 10'000 + 5000 * (round % 3))));
      for (unsigned i = 0; i < 1000; ++i) p[i] = round * 10'000 + i;
      table[round] = reinterpret_cast<std::uint64_t>(p);
      void* box = table;
      ASSERT_EQ(w().send(peer, {}, std::span(&box, 1)), ok);
      ASSERT_EQ(w().hand_over(peer, std::span(&r, 1)), ok);
    } else {
      void* box = table;
      ASSERT_EQ(w().receive(peer, {}, std::span(&box, 1)), ok);
      table = static_cast<std::uint64_t*>(box);
      ASSERT_EQ(w().take_over(peer, std::span(&r, 1)), ok);
      for (unsigned k = 0; k <= round; ++k) {
        const auto* p = reinterpret_cast<std::uint64_t*>(table[k]);  // NOLINT
        ASSERT_EQ(p[0], k * 10'000);
        ASSERT_EQ(p[999], k * 10'000 + 999);
      }
    }
  }
  if (me() == 0) {
    EXPECT_EQ(w().destroy_region(r), ok);
  }
}

using Frees = Cluster;

TEST_F(Frees, OfAnothersObjectsReachTheirOwner) {
  if (me() > 1) return;
  if (me() == 0) {
    const rid r = got(w().create_region(root));
    constexpr unsigned n = 600;
    auto** table = static_cast<void**>(got(w().allocate(r, n * sizeof(void*))));
    for (unsigned i = 0; i < n; ++i) table[i] = got(w().allocate(r, 64 + i % 3 * 100));
    void* box = table;
    EXPECT_EQ(w().send(1, std::span(&r, 1), std::span(&box, 1)), ok);
    rid done = root;
    EXPECT_EQ(w().receive(1, std::span(&done, 1)), ok);
    for (unsigned i = 0; i < n; ++i) {
      const region_status s = w().deallocate(table[i]);
      const region_status later = s == ok ? w().flush() : s;
      EXPECT_EQ(later == ok, i % 2 == 1) << i << ": " << to_text(later);
    }
    EXPECT_EQ(w().destroy_region(r), ok);
  } else {
    rid r = root;
    void* box = nullptr;
    EXPECT_EQ(w().receive(0, std::span(&r, 1), std::span(&box, 1)), ok);
    for (unsigned i = 0; i < 600; i += 2)
      EXPECT_EQ(w().deallocate(static_cast<void**>(box)[i]), ok);
    EXPECT_EQ(w().flush(), ok);
    const rid done = got(w().create_region(root));
    EXPECT_EQ(w().send(0, std::span(&done, 1)), ok);
    EXPECT_EQ(w().destroy_region(done), ok);
  }
}

}  // namespace
}  // namespace quarry::cluster::transfer_test
