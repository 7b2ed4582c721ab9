// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small programs over the simulated network that show one property each. The tests of the cluster
// run them as they are; the tests of the faults run them on a cluster with a deliberate fault.
#include <quarry/cluster/simulation.hpp>

#include <gtest/gtest.h>

namespace quarry::cluster::testing {

/// Up to three levels of schedulers over 64 MiB; each worker has its own memory.
inline simulation_options small_cluster(unsigned workers, std::uint64_t seed = 1) {
  simulation_options o;
  o.workers = workers;
  o.tree = {2, 2};
  o.seed = seed;
  o.isolated = true;
  o.capacity = 64u << 20;
  o.tuning.reserve_pages = 2;
  return o;
}

/// One worker requests more memory than there is while seven request little: only the large request
/// fails.
inline void run_large_and_small_requests(std::uint64_t seed,
                                         detail::fault fault = detail::fault::none) {
  simulation_options o = small_cluster(8, seed);
  o.worker.leases = false;
  o.tree = {2, 4};
  o.fault = fault;
  simulation s(o);
  s.run([&](worker& w) {
    const rid r = *w.create_region(root);
    EXPECT_TRUE(w.number() != 7 || w.allocate(r, 20u << 20));
    w.barrier();
    if (w.number() == 0) {
      EXPECT_EQ(w.allocate(r, 60u << 20).status, region_status::out_of_memory);
    } else {
      EXPECT_EQ(w.allocate(r, 2u << 20).status, region_status::ok) << "a small request failed";
    }
    w.barrier();
    EXPECT_EQ(w.destroy_region(r), region_status::ok);
  });
  EXPECT_EQ(s.check_invariants(), "");
}

/// A worker frees objects of a region and sends the region; the receiver destroys the region at
/// once. The frees reach the scheduler first.
inline void run_frees_before_send(std::uint64_t seed, detail::fault fault = detail::fault::none) {
  simulation_options o = small_cluster(4, seed);
  o.jitter = 200e-6;
  o.fault = fault;
  simulation s(o);
  const simulation_result result = s.run([&](worker& w) {
    if (w.number() == 0) {
      const rid r = *w.create_region(root);
      std::vector<void*> all(20);
      ASSERT_EQ(w.allocate_bulk(r, 200, all), region_status::ok);
      for (void* p : all) EXPECT_EQ(w.deallocate(p), region_status::ok);
      const rid regions[] = {r};
      EXPECT_EQ(w.send(3, regions), region_status::ok);
      rid theirs[] = {root};
      EXPECT_EQ(w.receive(3, theirs), region_status::ok);
      EXPECT_EQ(w.flush(), region_status::ok) << "the frees came after the region was destroyed";
    } else if (w.number() == 3) {
      rid regions[] = {root};
      EXPECT_EQ(w.receive(0, regions), region_status::ok);
      EXPECT_EQ(w.destroy_region(regions[0]), region_status::ok);
      const rid r = *w.create_region(root);
      std::vector<void*> all(20);
      ASSERT_EQ(w.allocate_bulk(r, 200, all), region_status::ok);
      regions[0] = r;
      EXPECT_EQ(w.send(0, regions), region_status::ok);
      EXPECT_EQ(w.destroy_region(r), region_status::ok);
    }
  });
  EXPECT_EQ(result.left.regions, 0u);
}

/// Eight workers create children of one region at other schedulers until a worker destroys the
/// region. Some of the children are created while their parent is destroyed.
inline void run_creations_below_dying_parent(std::uint64_t seed,
                                             detail::fault fault = detail::fault::none) {
  simulation_options o = small_cluster(8, seed);
  o.jitter = 50e-6;
  o.fault = fault;
  simulation s(o);
  rid parent = root;
  const simulation_result result = s.run([&](worker& w) {
    if (w.number() == 0)
      parent = *w.create_region(root, 0);  // at the top; its children lie elsewhere
    w.barrier();
    unsigned created = 0;
    while (const auto child = w.create_region(parent)) {
      (void)w.allocate(*child, 100);
      if (w.number() == 0 && ++created == 3) {
        EXPECT_EQ(w.destroy_region(parent), region_status::ok);
        EXPECT_EQ(w.allocate(*child, 100).status, region_status::stale_region);
      }
    }
  });
  EXPECT_EQ(result.left.regions, 0u);
  EXPECT_EQ(s.check_invariants(), "");
}

}  // namespace quarry::cluster::testing
