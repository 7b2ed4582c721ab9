// SPDX-License-Identifier: Apache-2.0
/// The default heap in a device-debug build (nvcc -G): its calls need more than the default stack.
#include <quarry/heap.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace quarry {
namespace {

/// Each lane holds `held` blocks of several sizes, the largest of several segments. It replaces
/// them in turn, and checks that they keep what it wrote.
struct replace_blocks {
  static constexpr unsigned held = 4;
  static constexpr unsigned rounds = 64;

  heap_ref<slab, cuda> heap;
  std::uint32_t* wrong;

  QUARRY_DEVICE void operator()() const {
    const auto me = static_cast<std::uint32_t>(simt::global_thread());
    std::uint32_t* blocks[held] = {};
    for (unsigned i = 0; i < rounds; ++i) {
      std::uint32_t*& p = blocks[i % held];
      if (p != nullptr && *p != me + i - held)
        simt::atomic_ref<std::uint32_t>(*wrong).add(1, simt::relaxed);
      heap.free(p);
      const std::size_t shift = (me * 5 + i) % 64 == 0 ? 18 : (me / 32 + i) % 10;
      p = static_cast<std::uint32_t*>(heap.malloc(std::size_t{16} << shift));
      if (p != nullptr) *p = me + i;
    }
    for (std::uint32_t* p : blocks) heap.free(p);
  }
};

TEST(DebugHeap, KeepsBlocksApartWithoutOptimization) {
  const heap<slab, cuda> h(64_MiB);
  simt::array<std::uint32_t, cuda> wrong(1);
  launch<cuda>({64, 256}, replace_blocks{h.ref(), wrong.data()});
  EXPECT_EQ(wrong.to_host()[0], 0u);
  EXPECT_EQ(h.check_invariants(), "");
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(DebugHeap, GivesKernelsAStackOfEightKibibytes) {
  const heap<slab, cuda> h(1_MiB);
  std::size_t size = 0;
  ASSERT_EQ(cudaDeviceGetLimit(&size, cudaLimitStackSize), cudaSuccess);
  EXPECT_GE(size, 8192u);
}

}  // namespace
}  // namespace quarry
