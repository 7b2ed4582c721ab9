// SPDX-License-Identifier: Apache-2.0
/// Growing allocators under explored schedules, and growth when the host has no more memory.

#include "check/effort.hpp"

#include <quarry/check/explore_allocator.hpp>
#include <quarry/heap.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cstdint>

namespace quarry::growth_explore_test {
namespace {

TEST(ExploreGrowingBump, SatisfiesTheContractOfBump) {
  expect_survival<growing_bump>({.schedules = scaled(20'000)});
  expect_survival<growing_warp_bump>({.schedules = scaled(20'000)});
}

/// Limits the writable memory of the process to 64 MiB while it lives.
class memory_limit {
 public:
  memory_limit() {
    ::getrlimit(RLIMIT_DATA, &before_);
    rlimit tight = before_;
    tight.rlim_cur = 64 << 20;
    ::setrlimit(RLIMIT_DATA, &tight);
  }
  ~memory_limit() { ::setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

TEST(Growth, ThatFailsForLackOfMemoryLeavesTheHeapUnchanged) {
  if (QUARRY_ASAN || QUARRY_TSAN) GTEST_SKIP() << "sanitizers need memory of their own";
  heap<growing_bump, cpu> h(1_MiB, {.max = 1_GiB});
  void* const p = h.allocate(1000);
  {
    const memory_limit limit;
    EXPECT_THROW(h.grow(512_MiB), out_of_memory);
  }
  EXPECT_EQ(h.pool_bytes(), 1u << 20);
  EXPECT_EQ(h.check_invariants(), "");
  EXPECT_EQ(h.statistics().live_bytes, 1008u);
  h.grow(512_MiB);
  EXPECT_EQ(h.pool_bytes(), 512u << 20);
  EXPECT_TRUE(h.pool().contains(p));
}

}  // namespace
}  // namespace quarry::growth_explore_test
