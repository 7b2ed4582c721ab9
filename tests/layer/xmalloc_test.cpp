// SPDX-License-Identifier: Apache-2.0
/// The functions of the paper, from two translation units: both must find the same heap.
#include "layer/kernels.hpp"
#include "layer/xmalloc_unit.hpp"

#include <quarry/layer/xmc.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace xmalloc_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

struct malloc_here {
  void** out;
  QUARRY_DEVICE void operator()() const { out[simt::global_thread()] = xmcMalloc(64); }
};
struct free_here {
  void** in;
  QUARRY_DEVICE void operator()() const { xmcFree(in[simt::global_thread()]); }
};

struct drain_here {
  QUARRY_DEVICE void operator()() const { detail::xmc_handle_here().heap.drain(); }
};

/// Drains the heap of the process, since leak detectors would report cached blocks.
class Xmc : public ::testing::Test {
 public:
  ~Xmc() override {
    if (detail::xmc_heap<here>.size != 0) launch<here>({1, 1}, drain_here{});
  }
};

TEST_F(Xmc, ReturnsNullptrBeforeXmcInit) {
  simt::array<void*, here> out(32);
  launch<here>({1, 32}, malloc_here{out.data()});
  for (void* p : out.to_host()) EXPECT_EQ(p, nullptr);
}

TEST_F(Xmc, ServesAllTranslationUnits) {
  xmcInit(8_MiB);
  simt::array<void*, here> out(512);
  for (int round = 0; round < 3; ++round) {
    launch<here>({2, 256}, malloc_here{out.data()});
    for (void* p : out.to_host()) EXPECT_NE(p, nullptr);
    free_in_the_other_unit(out);
    malloc_in_the_other_unit(out);
    for (void* p : out.to_host()) EXPECT_NE(p, nullptr);
    launch<here>({2, 256}, free_here{out.data()});
  }
}

TEST_F(Xmc, ThrowsIfItsHeapWouldHaveToGrow) {
  xmcInit(4_MiB);
  EXPECT_THROW(xmcInit(64_GiB), error) << "it cannot grow";
}

}  // namespace
}  // namespace xmalloc_test
