// SPDX-License-Identifier: Apache-2.0
/// heap_ref: calloc, realloc, aligned blocks and objects; heap: copies from and to the host.
#include "heap/kernels.hpp"

#include <quarry/layer/counted.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace quarry::blocks_test {
namespace {

using namespace quarry::testing;

/// The number of the first expectation that failed in a kernel; 0 if none did.
struct expectation {
  std::uint32_t* line;
  QUARRY_DEVICE void expect(bool good, std::uint32_t number) const {
    if (!good && *line == 0) *line = number;
  }
};
template <class Kernel>
std::uint32_t run(Kernel kernel) {
  simt::array<std::uint32_t, here> line(1);
  kernel.check.line = line.data();
  launch<here>({1, 1}, kernel);
  return line.to_host()[0];
}

QUARRY_DEVICE bool all_are(const void* p, std::size_t n, unsigned char value) {
  for (std::size_t i = 0; i < n; ++i)
    if (static_cast<const unsigned char*>(p)[i] != value) return false;
  return true;
}
QUARRY_DEVICE void set_all(void* p, std::size_t n, unsigned char value) {
  for (std::size_t i = 0; i < n; ++i) static_cast<unsigned char*>(p)[i] = value;
}

template <class Allocator>
class Blocks : public ::testing::Test {};
using allocators = ::testing::Types<cfmalloc, cmmalloc, slab, counted<cfmalloc>>;
TYPED_TEST_SUITE(Blocks, allocators);

template <class Ref>
struct calloc_kernel {
  Ref heap;
  expectation check{};
  QUARRY_DEVICE void operator()() const {
    // Fills all memory with ones, so that calloc finds no zeros by chance.
    void* dirty = nullptr;
    while (void* const p = heap.malloc(512)) {
      set_all(p, 512, 0xff);
      *static_cast<void**>(p) = dirty;
      dirty = p;
    }
    while (dirty != nullptr) {
      void* const next = *static_cast<void**>(dirty);
      heap.free(dirty);
      dirty = next;
    }
    for (std::size_t n = 1; n < 200; n += 7) {
      void* const p = heap.calloc(n, 3);
      check.expect(p != nullptr && all_are(p, n * 3, 0), 1);
      heap.free(p);
    }
    check.expect(heap.calloc(0, 8) == nullptr && heap.calloc(8, 0) == nullptr, 2);
    check.expect(heap.calloc(std::size_t{1} << 33, std::size_t{1} << 33) == nullptr,
                 3);  // the product, 2^66, overflows
    check.expect(heap.calloc(~std::size_t{0} / 2 + 2, 2) == nullptr, 4);
  }
};
TYPED_TEST(Blocks, CallocClearsBlocksAndFailsOnOverflow) {
  heap<TypeParam, here> h(1_MiB);
  EXPECT_EQ(run(calloc_kernel<typename heap<TypeParam, here>::ref_type>{h.ref()}), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.failures().count, 3u) << "two overflows, and the malloc that found the heap full";
}

template <class Ref>
struct realloc_kernel {
  Ref heap;
  expectation check{};
  QUARRY_DEVICE void operator()() const {
    void* p = heap.realloc(nullptr, 10);
    check.expect(p != nullptr, 1);
    set_all(p, 10, 7);
    std::size_t had = 10;
    for (const std::size_t n : {16u, 100u, 40u, 5000u, 70'000u, 200u}) {
      void* const q = heap.realloc(p, n);
      check.expect(q != nullptr && all_are(q, had < n ? had : n, 7), 2);
      check.expect(heap.usable_size(q) >= n, 3);
      check.expect(n > had || q == p, 4);  // the block was large enough
      set_all(q, n, 7);
      had = n;
      p = q;
    }
    check.expect(heap.realloc(p, std::size_t{1} << 40) == nullptr, 5);
    check.expect(all_are(p, 200, 7), 6);  // the block is unchanged
    check.expect(heap.realloc(p, 0) == nullptr, 7);
  }
};
TYPED_TEST(Blocks, ReallocKeepsContentsAndTheBlockIfItIsLargeEnough) {
  heap<TypeParam, here> h(1_MiB);
  EXPECT_EQ(run(realloc_kernel<typename heap<TypeParam, here>::ref_type>{h.ref()}), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u) << "realloc to 0 bytes frees";
}

template <class Ref>
struct sized_realloc_kernel {
  Ref heap;
  expectation check{};
  QUARRY_DEVICE void operator()() const {
    void* p = heap.realloc(nullptr, 0, 24);
    set_all(p, 24, 5);
    void* const q = heap.realloc(p, 24, 3000);
    check.expect(q != nullptr && all_are(q, 24, 5), 1);
    check.expect(heap.realloc(q, 3000, 17) == q, 2);
    check.expect(heap.realloc(q, 3000, 0) == nullptr, 3);
  }
};
TEST(Blocks, ReallocTakesTheOldSizeFromTheCaller) {
  heap<system_heap, here> h(1_MiB);
  EXPECT_EQ(run(sized_realloc_kernel<heap_ref<system_heap, here>>{h.ref()}), 0u);
  static_assert(!sizing_allocator<system_heap> && !sizing_allocator<bump>);
}

template <class Ref>
struct aligned_kernel {
  Ref heap;
  expectation check{};
  QUARRY_DEVICE void operator()() const {
    for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2)
      for (const std::size_t n : {1u, 16u, 100u, 5000u}) {
        void* const p = heap.aligned_malloc(n, alignment);
        void* const q = heap.aligned_malloc(n, alignment);
        check.expect(p != nullptr && q != nullptr, 1);
        check.expect(reinterpret_cast<std::uintptr_t>(p) % alignment == 0, 2);
        check.expect(reinterpret_cast<std::uintptr_t>(q) % (alignment < 16 ? 16 : alignment) == 0,
                     3);
        set_all(p, n, 1);
        set_all(q, n, 2);
        check.expect(all_are(p, n, 1), 4);
        heap.aligned_free(p);
        check.expect(all_are(q, n, 2), 5);
        heap.aligned_free(q);
      }
    heap.aligned_free(nullptr);
    check.expect(heap.aligned_malloc(0, 64) == nullptr, 6);
    check.expect(heap.aligned_malloc(~std::size_t{0} - 8, 64) == nullptr, 7);
  }
};
TYPED_TEST(Blocks, AlignedMallocServesEveryPowerOfTwo) {
  heap<TypeParam, here> h(1_MiB);
  EXPECT_EQ(run(aligned_kernel<typename heap<TypeParam, here>::ref_type>{h.ref()}), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.check_invariants(), "");
}

/// A type that counts its live objects.
struct tracked {
  std::uint32_t* alive;
  std::uint64_t value;
  QUARRY_DEVICE tracked(std::uint32_t* count, std::uint64_t v) : alive(count), value(v) {
    ++*alive;
  }
  tracked(const tracked&) = delete;
  QUARRY_DEVICE ~tracked() { --*alive; }
};
template <class Ref>
struct object_kernel {
  Ref heap;
  expectation check{};
  QUARRY_DEVICE void operator()() const {
    std::uint32_t alive = 0;
    tracked* const t = heap.template create<tracked>(&alive, 42u);
    check.expect(t != nullptr && alive == 1 && t->value == 42, 1);
    heap.destroy(t);
    check.expect(alive == 0, 2);
    heap.destroy(static_cast<tracked*>(nullptr));
    std::uint32_t made = 0;
    while (heap.template create<tracked>(&made, 1u) != nullptr) {
    }
    check.expect(made > 100, 3);
    check.expect(heap.template create<tracked>(&made, 1u) == nullptr, 4);  // no constructor runs
  }
};
TYPED_TEST(Blocks, CreateConstructsAndDestroyDestructs) {
  heap<TypeParam, here> h(64_KiB);
  EXPECT_EQ(run(object_kernel<typename heap<TypeParam, here>::ref_type>{h.ref()}), 0u);
}

struct alignas(64) wide {
  double values[8];
};
template <class Ref>
struct wide_kernel {
  Ref heap;
  expectation check{};
  QUARRY_DEVICE void operator()() const {
    for (int i = 0; i < 50; ++i)
      check.expect(reinterpret_cast<std::uintptr_t>(heap.template create<wide>()) % 64 == 0, 1);
  }
};
TEST(Blocks, CreateUsesTheAlignmentOfTheAllocator) {
  heap<bump, here> a(64_KiB);
  EXPECT_EQ(run(wide_kernel<heap_ref<bump, here>>{a.ref()}), 0u);
  heap<slab, here> b(64_KiB);
  EXPECT_EQ(run(wide_kernel<heap_ref<slab, here>>{b.ref()}), 0u);
}

// ---- from the host ------------------------------------------------------------------------------

struct add_one {
  std::uint32_t* values;
  std::uint32_t n;
  QUARRY_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < n; ++i) ++values[i];
  }
};
template <class Heap>
void expect_copies(const Heap& h) {
  std::vector<std::uint32_t> values(1000);
  std::iota(values.begin(), values.end(), 0u);
  auto* const block = static_cast<std::uint32_t*>(h.allocate(4000));
  ASSERT_NE(block, nullptr);
  h.copy_to(block, std::span<const std::uint32_t>(values));
  launch<here>({1, 1}, add_one{block, 1000});
  std::vector<std::uint32_t> back(1000);
  h.copy_from(std::span<std::uint32_t>(back), block);
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(back[i], i + 1);
  h.deallocate(block);
}
TEST(HostCopies, ReachBlocksAndComeBack) {
  expect_copies(heap<cfmalloc, here>(1_MiB));
  expect_copies(heap<slab, here>(1_MiB));
  expect_copies(heap<system_heap, here>(1_MiB));
}

TEST(HostCopies, WorkWithTheCopyFunctionOfTheBackend) {
  const heap<cfmalloc, here> h(1_MiB);
  void* const block = h.allocate(64);
  const std::uint64_t out = 77;
  std::uint64_t in = 0;
  simt::memory<here>::copy(block, &out, sizeof out);  // cudaMemcpy on a GPU, memcpy on the CPU
  simt::memory<here>::copy(&in, block, sizeof in);
  EXPECT_EQ(in, 77u);
}

TEST(HostCopies, OutsideThePoolThrow) {
  const heap<cfmalloc, here> h(64_KiB);
  std::vector<std::byte> much(128u << 10);
  void* const block = h.allocate(1000);
  EXPECT_THROW(h.copy_to(block, std::span<const std::byte>(much)), error);
  EXPECT_THROW(h.copy_from(std::span<std::byte>(much), block), error);
  std::uint64_t elsewhere = 0;
  EXPECT_THROW(h.copy_from(std::span<std::byte>(much.data(), 8), &elsewhere), error);
}

}  // namespace
}  // namespace quarry::blocks_test
