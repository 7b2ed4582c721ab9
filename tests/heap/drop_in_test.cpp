// SPDX-License-Identifier: Apache-2.0
/// malloc, free, calloc and realloc as kernels have them already, from two translation units.
#include "heap/drop_in_unit.hpp"

#include <quarry/drop_in.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using namespace quarry;
using here = default_backend;

struct take_sixteen {
  void** out;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::calloc, quarry::drop_in::malloc;
    out[simt::global_thread()] = simt::global_thread() % 2 == 0 ? malloc(16) : calloc(4, 4);
  }
};
/// What a program written to CUDA's functions does.
struct use_all {
  std::uint32_t* right;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::calloc, quarry::drop_in::free, quarry::drop_in::malloc,
        quarry::drop_in::realloc;
    auto* p = static_cast<std::uint32_t*>(calloc(10, sizeof(std::uint32_t)));
    bool good = p != nullptr;
    for (std::uint32_t i = 0; good && i < 10; ++i) good = p[i] == 0;
    if (good) p[9] = 9;
    p = static_cast<std::uint32_t*>(realloc(p, 4000));
    good = good && p != nullptr && p[9] == 9;
    free(p);
    free(nullptr);
    good = good && malloc(0) == nullptr;
    if (good) simt::atomic_ref<std::uint32_t>(*right).add(1, simt::relaxed);
  }
};

TEST(DropIn, GivesNothingBeforeItIsInitialised) {
  if (drop_in::detail::made<here> != nullptr) GTEST_SKIP() << "another test was first";
  simt::array<void*, here> out(32);
  launch<here>({1, 32}, take_sixteen{out.data()});
  for (void* p : out.to_host()) EXPECT_EQ(p, nullptr);
  EXPECT_THROW(drop_in::heap(), error);
}

/// The process has one heap.
heap<drop_in::allocator_type, here>& the_heap() {
  if (drop_in::detail::made<here> == nullptr) drop_in::init(8_MiB);
  return drop_in::heap();
}

TEST(DropIn, ServesWhatKernelsCall) {
  const auto& h = the_heap();
  simt::array<std::uint32_t, here> right(1);
  launch<here>({4, 128}, use_all{right.data()});
  EXPECT_EQ(right.to_host()[0], 512u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(DropIn, ServesAllTranslationUnits) {
  const auto& h = the_heap();
  simt::array<void*, here> blocks(256);
  launch<here>({1, 256}, take_sixteen{blocks.data()});
  for (void* p : blocks.to_host()) EXPECT_TRUE(h.pool().contains(p));
  quarry::testing::replace_in_the_other_unit(blocks);
  for (void* p : blocks.to_host()) EXPECT_TRUE(h.pool().contains(p));
  EXPECT_EQ(h.statistics().live_blocks, 256u);
  the_heap().reset();
}

TEST(DropIn, IsInitialisedOnce) {
  the_heap();
  EXPECT_THROW(drop_in::init(16_MiB), error);
}

}  // namespace
