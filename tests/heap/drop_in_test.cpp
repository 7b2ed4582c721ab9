// SPDX-License-Identifier: Apache-2.0
/// drop_in: malloc, free, calloc and realloc in kernels of two translation units.
#include "heap/drop_in_unit.hpp"

#include <quarry/drop_in.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace drop_in_test {
namespace {

using namespace quarry;
using here = default_backend;

struct allocate_sixteen {
  void** out;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::calloc, quarry::drop_in::malloc;
    out[simt::global_thread()] = simt::global_thread() % 2 == 0 ? malloc(16) : calloc(4, 4);
  }
};
/// A kernel written for CUDA's functions: allocates, clears, grows and frees.
struct use_all {
  std::uint32_t* correct;
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
    if (good) simt::atomic_ref<std::uint32_t>(*correct).add(1, simt::relaxed);
  }
};

TEST(DropIn, ReturnsNullptrBeforeInit) {
  if (drop_in::detail::process_heap<here> != nullptr)
    GTEST_SKIP() << "another test has called init";
  simt::array<void*, here> out(32);
  launch<here>({1, 32}, allocate_sixteen{out.data()});
  for (void* p : out.to_host()) EXPECT_EQ(p, nullptr);
  EXPECT_THROW(drop_in::heap(), error);
}

/// Returns the heap of the process, and makes it in the first call.
heap<drop_in::allocator_type, here>& initialised_heap() {
  if (drop_in::detail::process_heap<here> == nullptr) drop_in::init(8_MiB);
  return drop_in::heap();
}

TEST(DropIn, ServesAllFourFunctions) {
  const auto& h = initialised_heap();
  simt::array<std::uint32_t, here> correct(1);
  launch<here>({4, 128}, use_all{correct.data()});
  EXPECT_EQ(correct.to_host()[0], 512u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(DropIn, ServesAllTranslationUnitsFromOneHeap) {
  const auto& h = initialised_heap();
  simt::array<void*, here> blocks(256);
  launch<here>({1, 256}, allocate_sixteen{blocks.data()});
  for (void* p : blocks.to_host()) EXPECT_TRUE(h.pool().contains(p));
  quarry::testing::replace_in_second_unit(blocks);
  for (void* p : blocks.to_host()) EXPECT_TRUE(h.pool().contains(p));
  EXPECT_EQ(h.statistics().live_blocks, 256u);
  initialised_heap().reset();
}

TEST(DropIn, ThrowsIfInitIsCalledTwice) {
  initialised_heap();
  EXPECT_THROW(drop_in::init(16_MiB), error);
}

}  // namespace
}  // namespace drop_in_test
