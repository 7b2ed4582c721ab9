// SPDX-License-Identifier: Apache-2.0
/// Host functions of a heap on a stream: what they order, and that results wait for the stream.
#include "heap/kernels.hpp"
#include "heap/owned_stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::streams_test {
namespace {

using namespace quarry::testing;

static_assert(std::is_empty_v<stream_ref<cpu>>);
static_assert(!std::is_constructible_v<stream_ref<cpu>, void*>, "the CPU backend has no streams");

/// Every lane allocates one block and writes its number into it.
template <class Ref>
struct allocate_each {
  Ref heap;
  std::uint64_t size;
  std::uint64_t** blocks;
  QUARRY_DEVICE void operator()() const {
    auto* const p = static_cast<std::uint64_t*>(heap.malloc(size));
    if (p != nullptr) *p = simt::global_thread();
    blocks[simt::global_thread()] = p;
  }
};

constexpr std::uint32_t lanes = 512;

/// Enqueues allocate_each on the stream; `blocks` needs `lanes` elements.
template <class Heap, class Array>
void enqueue_allocations(const Heap& h, Array& blocks, stream_ref<here> stream,
                         std::uint64_t size = 64) {
  launch<here>({lanes / 128, 128},
               allocate_each<typename Heap::ref_type>{h.ref(), size, blocks.data()}, stream);
}
/// Returns the number of blocks that lie inside the pool of the heap.
template <class Heap, class Array>
std::uint32_t served(const Heap& h, const Array& blocks) {
  std::uint32_t n = 0;
  for (const std::uint64_t* p : blocks.to_host()) n += p != nullptr && h.pool().contains(p);
  return n;
}

template <class Allocator>
class Streams : public ::testing::Test {};
using allocators = ::testing::Types<slab, cfmalloc, scatter_alloc, growing_bump>;
TYPED_TEST_SUITE(Streams, allocators);

TYPED_TEST(Streams, OrderConstructionBeforeLaterKernels) {
  const owned_stream<here> stream;
  simt::array<std::uint64_t*, here> blocks(lanes);
  const heap<TypeParam, here> h(4_MiB, stream.ref());
  enqueue_allocations(h, blocks, stream.ref());
  stream.ref().synchronize();
  EXPECT_EQ(served(h, blocks), lanes);
  EXPECT_EQ(h.check_invariants(stream.ref()), "");
}

TYPED_TEST(Streams, OrderConstructionInMemoryOfTheCallerBeforeLaterKernels) {
  const owned_stream<here> stream;
  simt::array<std::uint64_t*, here> blocks(lanes);
  simt::array<std::byte, here> memory(4u << 20);
  memory.from_host(std::vector<std::byte>(memory.size(), std::byte{0xa5}));
  const heap<TypeParam, here> h(memory.data(), 4_MiB, stream.ref());
  enqueue_allocations(h, blocks, stream.ref());
  stream.ref().synchronize();
  EXPECT_EQ(served(h, blocks), lanes);
}

TYPED_TEST(Streams, OrderResetBetweenKernels) {
  const owned_stream<here> stream;
  simt::array<std::uint64_t*, here> before(lanes), after(lanes);
  heap<TypeParam, here> h(1_MiB, stream.ref());
  constexpr std::uint64_t size = 1024;  // half of the pool for each kernel
  enqueue_allocations(h, before, stream.ref(), size);
  h.reset(stream.ref());
  enqueue_allocations(h, after, stream.ref(), size);
  const heap_statistics s = h.statistics(stream.ref());
  EXPECT_EQ(served(h, before), lanes);
  EXPECT_EQ(served(h, after), lanes);
  ASSERT_TRUE(s.live_bytes.has_value());
  EXPECT_LT(*s.live_bytes, std::uint64_t{lanes} * size * 3 / 2) << "one kernel's blocks are live";
}

TYPED_TEST(Streams, StatisticsAndChecksSeeEarlierKernels) {
  const owned_stream<here> stream;
  simt::array<std::uint64_t*, here> blocks(lanes);
  const heap<TypeParam, here> h(4_MiB, stream.ref());
  enqueue_allocations(h, blocks, stream.ref());
  EXPECT_GE(h.statistics(stream.ref()).live_bytes, lanes * 64u);
  h.check(stream.ref());
  EXPECT_THROW(h.check_empty(stream.ref()), blocks_leaked);
  enqueue_allocations(h, blocks, stream.ref(), 64u << 20);
  EXPECT_EQ(h.failures(stream.ref()).count, lanes);
  EXPECT_THROW(h.check(stream.ref()), allocation_failed);
}

TEST(StreamsOfAHeap, CarryBlocksAndCopiesOfTheHost) {
  const owned_stream<here> stream;
  const heap<slab, here> h(1_MiB, stream.ref());
  std::vector<std::uint32_t> values(1000), back(1000);
  std::iota(values.begin(), values.end(), 7u);
  void* const block = h.allocate(4000, stream.ref());
  ASSERT_NE(block, nullptr);
  h.copy_to(block, std::span<const std::uint32_t>(values), stream.ref());
  h.copy_from(std::span<std::uint32_t>(back), block, stream.ref());
  EXPECT_EQ(back, values);
  h.deallocate(block, stream.ref());
  h.check_empty(stream.ref());
}

TEST(StreamsOfAHeap, OrderGrowthBetweenKernels) {
  const owned_stream<here> stream;
  simt::array<std::uint64_t*, here> blocks(lanes);
  heap<slab, here> h(2_MiB, {.max = 64_MiB}, stream.ref());
  enqueue_allocations(h, blocks, stream.ref(), 8192);  // twice the pool
  EXPECT_TRUE(h.adapt(stream.ref()));
  h.reset(stream.ref());
  h.grow(16_MiB, stream.ref());
  enqueue_allocations(h, blocks, stream.ref(), 8192);
  h.check(stream.ref());
  EXPECT_EQ(served(h, blocks), lanes);
  h.reset(stream.ref());
  EXPECT_GT(h.trim(stream.ref()), 0u);
}

}  // namespace
}  // namespace quarry::streams_test
