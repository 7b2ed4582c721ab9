// SPDX-License-Identifier: Apache-2.0
/// The number of upstream calls when many lanes run concurrently, as on a GPU. Counts carry over to
/// a GPU; times do not.
#include "layer/instrumented.hpp"

#include <quarry/heap.hpp>
#include <quarry/layer/buffer.hpp>
#include <quarry/pool/system_heap.hpp>
#include <quarry/simt/explore.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace buffer_resident_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

/// A call takes as long as many other calls, so all lanes that need one wait at the same time.
class slow_heap : public system_heap {
 public:
  using system_heap::system_heap;
  QUARRY_DEVICE void* malloc(std::size_t n) const {
    for (int i = 0; i < 100; ++i) simt::spin();
    return system_heap::malloc(n);
  }
};

template <class Ref>
struct malloc_and_free {
  static constexpr std::uint32_t times = 4;
  Ref heap;
  QUARRY_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < times; ++i) {
      void* const p = heap.malloc(520);
      if (p == nullptr) simt::fail("an allocation failed");
      heap.free(p);
    }
  }
};

constexpr std::uint32_t lanes = 1024;
constexpr std::uint32_t calls_per_launch = 2 * lanes * 4;

/// Returns the number of upstream calls in each of five launches.
template <class Buffer>
std::vector<std::uint64_t> upstream_calls() {
  const heap<Buffer, cpu> h(64_MiB);
  simt::explorer concurrent;
  std::vector<std::uint64_t> calls;
  std::uint64_t before = 0;
  for (std::uint64_t launch = 0; launch < 5; ++launch) {
    const auto result =
        concurrent.run({.seed = launch, .step_limit = 100'000'000}, {lanes / 128, 128},
                       malloc_and_free<typename heap<Buffer, cpu>::ref_type>{h.ref()});
    EXPECT_EQ(result.failure, "");
    const call_counts counted = calls_of(h.statistics());
    calls.push_back(counted.mallocs + counted.frees - before);
    before = counted.mallocs + counted.frees;
  }
  EXPECT_EQ(h.check_invariants(), "");
  h.ref().allocator().drain();
  return calls;
}

TEST(BufferWithManyLanes, CallsTheUpstreamInTheFirstLaunchOnly) {
  const auto calls = upstream_calls<buffer<instrumented<slow_heap>>>();
  EXPECT_GE(calls[0], lanes) << "all lanes ran concurrently";
  EXPECT_LE(calls[0], lanes + lanes / 50);
  for (std::size_t launch = 1; launch < calls.size(); ++launch)
    EXPECT_LE(calls[launch], calls_per_launch / 1000) << "launch " << launch;
}

TEST(BufferWithManyLanes, CallsTheUpstreamInEveryLaunchWithThe256BlocksOfThePaper) {
  const auto calls = upstream_calls<buffer<instrumented<slow_heap>, 16>>();
  for (const std::uint64_t n : calls) EXPECT_GE(n, lanes / 2);
}

}  // namespace
}  // namespace buffer_resident_test
