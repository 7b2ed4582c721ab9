// SPDX-License-Identifier: Apache-2.0
/// Small programs over the simulated network that show one property each.

#include "directed_programs.hpp"

#include <quarry/cluster/simulation.hpp>

#include <gtest/gtest.h>

namespace quarry::cluster::programs_test {
namespace {

using testing::small_cluster;

template <class T>
T* at(worker& w, void* p) {
  return w.local(static_cast<T*>(p));
}

TEST(ClusterProgram, GivesEachWorkerAlmostAllMemoryInTurn) {
  simulation s(small_cluster(8));
  ASSERT_EQ(s.tree().levels(), 3u);
  std::vector<unsigned> got(8);
  s.run([&](worker& w) {
    for (unsigned turn = 0; turn < w.count(); ++turn) {
      if (turn == w.number()) {
        const rid r = *w.create_region(root);
        while (w.allocate(r, 1u << 20)) ++got[turn];
        EXPECT_EQ(w.destroy_region(r), region_status::ok);
      }
      w.barrier();
    }
  });
  for (const unsigned blocks : got) EXPECT_GE(blocks, 60u) << "of 64 MiB";
  EXPECT_EQ(s.check_invariants(), "");
}

struct page_waits {
  std::uint64_t waits = 0;     // requests that waited for pages of another scheduler
  std::uint64_t requests = 0;  // for pages
  double seconds = 0;          // that the workers waited for schedulers
};

/// Eight workers below seven schedulers allocate 12 MiB each in blocks of 64 KiB, with 20 µs of
/// computation between two of them.
page_waits grow_steadily(std::uint64_t low_pages) {
  simulation_options o = small_cluster(8);
  o.capacity = 1u << 30;
  o.tuning.reserve_pages = 8;
  o.tuning.low_pages = low_pages;
  o.worker.leases = false;
  simulation s(o);
  const simulation_result result = s.run([&](worker& w) {
    const rid r = *w.create_region(root);
    w.barrier();
    for (int i = 0; i < 192; ++i) {
      EXPECT_TRUE(w.allocate(r, 64u << 10));
      w.advance_time(20e-6);
    }
    EXPECT_EQ(w.destroy_region(r), region_status::ok);
  });
  EXPECT_EQ(s.check_invariants(), "");
  page_waits all{0, 0, result.workers.waited_for_schedulers};
  for (node_id n = 0; n < s.tree().schedulers(); ++n) {
    all.waits += s.statistics_of(n).waits_for_pages;
    all.requests += s.statistics_of(n).page_requests;
  }
  return all;
}

TEST(ClusterProgram, ObtainsPagesBeforeAnAllocationWaitsForThem) {
  const page_waits early = grow_steadily(4), late = grow_steadily(0);
  EXPECT_EQ(early.waits, 0u);
  EXPECT_GE(late.waits, 8u);
  EXPECT_GT(late.seconds, early.seconds);
  EXPECT_LE(early.requests, 4 * late.requests);
}

TEST(ClusterProgram, HasPagesAtEverySchedulerFromTheStart) {
  for (const std::uint64_t low : {0, 1}) {
    simulation_options o = small_cluster(8);
    o.tuning.low_pages = low;
    simulation s(o);
    s.run([](worker& w) { w.barrier(); });
    for (node_id n = 1; n < s.tree().schedulers(); ++n)
      EXPECT_EQ(s.statistics_of(n).page_requests, low) << "scheduler " << n;
    EXPECT_EQ(s.check_invariants(), "");
  }
}

TEST(ClusterProgram, ServesSmallRequestsBehindALargeOneThatFails) {
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::run_large_and_small_requests(seed);
  }
}

TEST(ClusterProgram, FreesReachTheirOwnerBeforeOtherWorkersLearnOfThem) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::run_frees_before_send(seed);
  }
}

TEST(ClusterProgram, DestroysAChildThatIsCreatedWhileItsParentIsDestroyed) {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::run_creations_below_dying_parent(seed);
  }
}

struct item {
  item* next;
  int value;
};

TEST(ClusterProgram, MovesAListWithItsPointers) {
  simulation s(small_cluster(4));
  void* head = nullptr;
  s.run([&](worker& w) {
    if (w.number() == 0) {
      const rid r = *w.create_region(root);
      const rid below = *w.create_region(r);  // perhaps at another scheduler
      item* first = nullptr;
      for (int i = 0; i < 500; ++i) {
        auto* p = static_cast<item*>(*w.allocate(i % 2 == 0 ? r : below, sizeof(item)));
        *w.local(p) = {first, i};
        first = p;
      }
      head = first;
      const rid regions[] = {r};
      EXPECT_EQ(w.send(1, regions), region_status::ok);
    } else if (w.number() == 1) {
      rid regions[] = {root};
      ASSERT_EQ(w.receive(0, regions), region_status::ok);
      int expected = 499;
      for (auto* p = static_cast<item*>(head); p != nullptr; p = w.local(p)->next)
        ASSERT_EQ(w.local(p)->value, expected--);
      EXPECT_EQ(expected, -1);
      EXPECT_EQ(w.destroy_region(regions[0]), region_status::ok);
    }
  });
}

TEST(ClusterProgram, ReportsAMismatchToBothSides) {
  simulation s(small_cluster(2));
  s.run([&](worker& w) {
    const unsigned peer = 1 - w.number();
    const rid mine = *w.create_region(root);
    void* const object = *w.allocate(mine, 100);
    w.barrier();
    if (w.number() == 0) {
      const rid regions[] = {mine};
      void* const objects[] = {object};
      EXPECT_EQ(w.send(peer, regions), region_status::mismatch) << "another region was expected";
      EXPECT_EQ(w.send(peer, regions), region_status::mismatch) << "two regions were expected";
      EXPECT_EQ(w.send(peer, {}, objects), region_status::ok);
      EXPECT_EQ(w.hand_over(peer, regions), region_status::mismatch) << "a copy was expected";
      const rid stale[] = {make_rid(0, region_id(2, 4000))};
      EXPECT_EQ(w.send(peer, stale), region_status::stale_region);
    } else {
      rid other[] = {mine};
      EXPECT_EQ(w.receive(peer, other), region_status::mismatch);
      rid two[] = {root, root};
      EXPECT_EQ(w.receive(peer, two), region_status::mismatch);
      void* objects[] = {nullptr};
      EXPECT_EQ(w.receive(peer, {}, objects), region_status::ok);
      EXPECT_NE(objects[0], nullptr);
      rid any[] = {root};
      EXPECT_EQ(w.receive(peer, any), region_status::mismatch);
      EXPECT_EQ(w.receive(peer, any), region_status::stale_region);
    }
    EXPECT_EQ(w.destroy_region(mine), region_status::ok);
  });
}

TEST(ClusterProgram, AHandOverEndsTheSendersCopy) {
  simulation s(small_cluster(2));
  s.run([&](worker& w) {
    if (w.number() == 0) {
      const rid r = *w.create_region(root);
      void* p = nullptr;
      for (int i = 0; i < 100; ++i) {
        p = *w.allocate(r, 64);
        *at<int>(w, p) = 7;
      }
      const rid regions[] = {r};
      ASSERT_EQ(w.hand_over(1, regions), region_status::ok);
      EXPECT_EQ(*at<int>(w, p), 0);
    } else {
      rid regions[] = {root};
      ASSERT_EQ(w.take_over(0, regions), region_status::ok);
      const auto packed = w.pack(regions[0]);
      ASSERT_TRUE(packed);
      EXPECT_EQ(packed->live_bytes, 6400u) << "free leased slots were returned before";
      EXPECT_EQ(*at<int>(w, packed->ranges[0].address), 7);
      EXPECT_EQ(w.destroy_region(regions[0]), region_status::ok);
    }
  });
}

TEST(ClusterProgram, AllocatesThroughLeasesWithFewMessages) {
  simulation_options o = small_cluster(4);
  o.isolated = false;
  simulation s(o);
  const simulation_result r = s.run([](worker& w) {
    const rid region = *w.create_region(root);
    for (int i = 0; i < 30'000; ++i) EXPECT_TRUE(w.allocate(region, 256));
    EXPECT_EQ(w.destroy_region(region), region_status::ok);
  });
  EXPECT_LE(static_cast<double>(r.workers.messages), 0.02 * static_cast<double>(r.workers.calls));
}

TEST(ClusterProgram, ReportsWhatIsLeft) {
  simulation s(small_cluster(3));
  const simulation_result r = s.run([](worker& w) {
    const rid region = *w.create_region(root);
    if (w.number() == 1) {
      EXPECT_TRUE(w.allocate(region, 1000));
    } else {
      EXPECT_EQ(w.destroy_region(region), region_status::ok);
    }
  });
  EXPECT_EQ(r.left.regions, 1u);
  EXPECT_EQ(r.left.objects, 1u);
  EXPECT_EQ(r.left.bytes, 1024u);
}

TEST(ClusterProgram, NamesTheWorkersOfADeadlock) {
  simulation s(small_cluster(2));
  try {
    s.run([](worker& w) {
      rid any[] = {root};
      if (w.number() == 1) w.receive(0, any);
    });
    FAIL() << "the run ended";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("wait"), std::string::npos) << e.what();
  }
}

TEST(ClusterProgram, RethrowsTheExceptionOfAWorker) {
  simulation s(small_cluster(2));
  EXPECT_THROW(s.run([](worker& w) {
    if (w.number() == 1) throw std::runtime_error("enough");
  }),
               std::runtime_error);
}

TEST(ClusterProgram, EqualSeedsGiveEqualRuns) {
  const auto events = [](std::uint64_t seed) {
    simulation s(small_cluster(8, seed));
    const simulation_result r = s.run([](worker& w) {
      const rid region = *w.create_region(root);
      for (std::size_t i = 1; i < 200; ++i) (void)w.allocate(region, i);
      w.destroy_region(region);
    });
    return std::pair(r.seconds, r.messages);
  };
  EXPECT_EQ(events(5), events(5));
  EXPECT_NE(events(5).first, events(6).first);
}

}  // namespace
}  // namespace quarry::cluster::programs_test
