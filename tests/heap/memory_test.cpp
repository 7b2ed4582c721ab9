// SPDX-License-Identifier: Apache-2.0
/// Heaps in memory of the caller and in memory of a memory source.
#include "heap/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

namespace quarry::memory_test {
namespace {

using namespace quarry::testing;

/// A source of backend memory that counts the allocated bytes, with the functions of cuda::mr.
struct plain_source {
  std::uint64_t allocated = 0;
  void* allocate(std::size_t n, std::size_t) {
    allocated += n;
    return simt::memory<here>::allocate(n);
  }
  void deallocate(void* p, std::size_t n, std::size_t) {
    allocated -= n;
    simt::memory<here>::release(p, n);
  }
};
/// As plain_source, with the function names of newer versions of cuda::mr.
struct sync_source : private plain_source {
  using plain_source::allocated;
  void* allocate_sync(std::size_t n, std::size_t alignment) { return allocate(n, alignment); }
  void deallocate_sync(void* p, std::size_t n, std::size_t alignment) {
    deallocate(p, n, alignment);
  }
};
static_assert(memory_source<plain_source> && memory_source<sync_source> &&
              memory_source<std::pmr::memory_resource>);
static_assert(!memory_source<int> && !memory_source<std::span<std::byte>>);

template <class Source>
void expect_heap_in(Source& source) {
  {
    const heap<cfmalloc, here> h(source, 1_MiB);
    EXPECT_EQ(source.allocated, 1u << 20);
    EXPECT_LT(h.pool_bytes(), 1u << 20) << "metadata takes a part of the memory";
    const auto blocks = fill(h, 1024);
    EXPECT_GT(blocks.size(), 512u);
    EXPECT_EQ(wrong_words(blocks, 1024), 0u);
    EXPECT_EQ(h.check_invariants(), "");
  }
  EXPECT_EQ(source.allocated, 0u);
}
TEST(MemorySource, GetsItsMemoryBackWhenTheHeapEnds) {
  plain_source plain;
  expect_heap_in(plain);
  sync_source sync;
  expect_heap_in(sync);
}

TEST(MemorySource, GetsItsMemoryBackOnceIfTheHeapMoved) {
  plain_source source;
  {
    heap<bump, here> first(source, 1_MiB);
    heap<bump, here> second = std::move(first);
    first = heap<bump, here>(source, 64_KiB);
    EXPECT_EQ(source.allocated, (1u << 20) + (64u << 10));
    EXPECT_EQ(fill(second, 1024, 8).size(), 8u);
  }
  EXPECT_EQ(source.allocated, 0u);
}

TEST(MemorySource, GetsItsMemoryBackWhenTheHeapIsAssignedTo) {
  plain_source source;
  heap<bump, here> h(source, 1_MiB);
  heap<bump, here> other(source, 64_KiB);
  h = std::move(other);
  EXPECT_EQ(source.allocated, 64u << 10) << "assignment releases the memory that the heap had";
  EXPECT_EQ(fill(h, 1024, 8).size(), 8u);
  EXPECT_EQ(other.pool_bytes(), 0u);
  h = heap<bump, here>(1_MiB);
  EXPECT_EQ(source.allocated, 0u);
}

TEST(MemorySource, KeepsItsHeapWhenTheHeapIsAssignedToItself) {
  plain_source source;
  heap<bump, here> h(source, 1_MiB);
  heap<bump, here>& same = h;
  h = std::move(same);
  EXPECT_EQ(source.allocated, 1u << 20);
  EXPECT_EQ(fill(h, 1024, 8).size(), 8u);
}

TEST(MemorySource, GetsItsMemoryBackIfTheConstructorThrows) {
  plain_source source;
  EXPECT_THROW((heap<slab, here>(source, 256_B)), error);
  EXPECT_EQ(source.allocated, 0u);
}

TEST(MemorySource, MayBeAStandardMemoryResourceOnTheCpu) {
  std::pmr::monotonic_buffer_resource source;
  const heap<cfmalloc, cpu> h(source, 1_MiB);
  EXPECT_NE(h.allocate(1000), nullptr);
}

/// Checks that the message names the bytes given and needed, and that these are enough.
template <class Allocator>
void expect_size_in_message(std::uint64_t size) {
  simt::array<std::byte, here> memory(1u << 20);
  std::byte* const unaligned = memory.data() + 16;
  std::string message;
  try {
    const heap<Allocator, here> h(unaligned, bytes(size));
  } catch (const error& e) {
    message = e.what();
  }
  const std::string advice = "provide at least ";
  EXPECT_NE(message.find("heap: " + std::to_string(size) + " bytes of the caller"),
            std::string::npos)
      << message;
  const std::size_t at = message.find(advice);
  ASSERT_NE(at, std::string::npos) << message;
  const std::uint64_t needed = std::stoull(message.substr(at + advice.size()));
  EXPECT_GT(needed, size);
  EXPECT_LE(needed, memory.size());
  const heap<Allocator, here> h(unaligned, bytes(needed));
  EXPECT_NE(h.allocate(16), nullptr);
}
TEST(Heap, NamesTheBytesThatAHeapInMemoryOfTheCallerNeeds) {
  for (const std::uint64_t size : {0u, 100u, 1536u, 4096u}) {
    expect_size_in_message<slab>(size);
    expect_size_in_message<scatter_alloc>(size);
  }
  expect_size_in_message<cfmalloc>(200);
  expect_size_in_message<bump>(20);
}

TEST(Array, HasALimitedNumberOfElements) {
  EXPECT_THROW((simt::array<std::uint64_t, here>(std::size_t{1} << 61)), out_of_memory);
}

TEST(Heap, UsesTheMemoryOfASpan) {
  simt::array<std::byte, here> memory(1u << 20);
  const heap<cfmalloc, here> h(std::span<std::byte>(memory.data(), memory.size()));
  for (void* p : fill(h, 4096)) {
    EXPECT_GE(static_cast<std::byte*>(p), memory.data());
    EXPECT_LE(static_cast<std::byte*>(p) + 4096, memory.data() + memory.size());
  }
}

template <class Allocator>
void expect_no_write_outside() {
  constexpr std::uint64_t guard = 4096;
  for (const std::uint64_t size :
       {64u << 10, (64u << 10) + 200, 1u << 20, (1u << 20) - 128, 3u << 20}) {
    simt::array<std::byte, here> memory(size + guard);
    std::vector<std::byte> pattern(size + guard, std::byte{0xa5});
    memory.from_host(pattern);
    const heap<Allocator, here> h(memory.data(), bytes(size));
    const auto blocks = fill(h, 512, 10'000);
    EXPECT_GT(blocks.size() * 512, size / 2);
    EXPECT_EQ(wrong_words(blocks, 512), 0u);
    EXPECT_EQ(h.check_invariants(), "");
    const auto after = memory.to_host();
    EXPECT_EQ(std::count(after.end() - guard, after.end(), std::byte{0xa5}), std::ptrdiff_t{guard})
        << size;
  }
}
TEST(Heap, WritesNothingOutsideTheMemoryOfTheCaller) {
  expect_no_write_outside<slab>();
  expect_no_write_outside<cfmmalloc>();
  expect_no_write_outside<scatter_alloc>();
}

TEST(Heap, OfEachKindOfMemoryWorksBesideTheOthers) {
  simt::array<std::byte, here> memory(1u << 20);
  plain_source source;
  const heap<cfmalloc, here> owned(1_MiB);
  const heap<growing_bump, here> growing(2_MiB, {.max = 16_MiB});
  const heap<slab, here> in_array(memory.data(), 1_MiB);
  const heap<cmalloc, here> in_source(source, 1_MiB);
  const auto a = fill(owned, 512, 100);
  const auto b = fill(growing, 512, 100);
  const auto c = fill(in_array, 512, 100);
  const auto d = fill(in_source, 512, 100);
  for (const auto* blocks : {&a, &b, &c, &d}) {
    EXPECT_EQ(blocks->size(), 100u);
    EXPECT_EQ(wrong_words(*blocks, 512), 0u);
  }
}

#if QUARRY_CUDA
TEST(Heap, UsesMemoryOfCudaMallocAsync) {
  cudaStream_t stream{};
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 1u << 20, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  {
    const heap<cfmalloc, cuda> h(memory, 1_MiB);
    const auto blocks = fill(h, 4096);
    EXPECT_GT(blocks.size(), 128u);
    EXPECT_EQ(wrong_words(blocks, 4096), 0u);
  }
  EXPECT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}
#endif

}  // namespace
}  // namespace quarry::memory_test
