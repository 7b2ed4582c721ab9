// SPDX-License-Identifier: Apache-2.0
/// Streams of a GPU: a host function with a stream waits for this stream and for no other.
#include "heap/kernels.hpp"
#include "heap/owned_stream.hpp"

#include <gtest/gtest.h>

#if __has_include(<cuda/stream_ref>)
#include <cuda/stream_ref>
#endif

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace quarry {
namespace {

using namespace quarry::testing;

static_assert(std::is_convertible_v<cudaStream_t, stream_ref<quarry::cuda>>);
static_assert(!std::is_constructible_v<stream_ref<quarry::cuda>, int>);
static_assert(!std::is_constructible_v<stream_ref<cpu>, cudaStream_t>);
#if __has_include(<cuda/stream_ref>)
static_assert(std::is_convertible_v<::cuda::stream_ref, stream_ref<quarry::cuda>>);
#endif
struct stream_view {  // as rmm::cuda_stream_view
  cudaStream_t stream;
  operator cudaStream_t() const { return stream; }
};
static_assert(std::is_convertible_v<stream_view, stream_ref<quarry::cuda>>);

/// One lane that runs until the host writes `stop`, or ten seconds have passed.
struct wait_for_host {
  const volatile std::uint32_t* stop;
  std::uint32_t* timed_out;
  QUARRY_DEVICE void operator()() const {
#if QUARRY_DEVICE_CODE
    std::uint64_t start = 0, now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    while (*stop == 0) {
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      if (now - start > 10'000'000'000u) {
        *timed_out = 1;
        return;
      }
    }
#endif
  }
};

/// A word in host memory that kernels can read and write.
class shared_word {
 public:
  shared_word() {
    simt::check_cuda(cudaHostAlloc(&word_, sizeof *word_, cudaHostAllocMapped), "mapped memory");
    *word_ = 0;
  }
  shared_word(const shared_word&) = delete;
  shared_word& operator=(const shared_word&) = delete;
  ~shared_word() { (void)cudaFreeHost(word_); }
  std::uint32_t* data() const { return word_; }
  volatile std::uint32_t& value() const { return *word_; }

 private:
  std::uint32_t* word_ = nullptr;
};

/// All host functions that take a stream, apart from trim, which waits for the device.
template <class Stream>
void call_all(heap<slab, quarry::cuda>& h, const Stream& stream) {
  const std::uint64_t value = 42;
  std::uint64_t back = 0;
  void* const p = h.allocate(64, stream);
  ASSERT_NE(p, nullptr);
  h.copy_to(p, std::span<const std::uint64_t>(&value, 1), stream);
  h.copy_from(std::span<std::uint64_t>(&back, 1), p, stream);
  EXPECT_EQ(back, value);
  EXPECT_EQ(h.statistics(stream).live_blocks, 1u);
  h.deallocate(p, stream);
  h.check_empty(stream);
  h.clear_failures(stream);
  EXPECT_FALSE(h.adapt(stream));
  h.reset(stream);
  EXPECT_EQ(h.failures(stream).count, 0u);
}

TEST(GpuStreams, AreWaitedForSeparately) {
  const owned_stream<quarry::cuda> busy, used;
  const shared_word stop, timed_out;
  heap<slab, quarry::cuda> h(4_MiB, used.get());
  // The first launch of a kernel loads it, which may wait for the device.
  call_all(h, used.get());
  stop.value() = 1;
  launch<quarry::cuda>({1, 1}, wait_for_host{stop.data(), timed_out.data()});
  stop.value() = 0;

  launch<quarry::cuda>({1, 1}, wait_for_host{stop.data(), timed_out.data()}, busy.get());
  call_all(h, used.get());
  EXPECT_EQ(cudaStreamQuery(busy.get()), cudaErrorNotReady) << "the other stream is still busy";
  stop.value() = 1;
  busy.ref().synchronize();
  EXPECT_EQ(timed_out.value(), 0u) << "a call waited for the stream that it was not given";
}

TEST(GpuStreams, MayBeTheNullStreamOrAnyTypeThatWrapsOne) {
  heap<slab, quarry::cuda> h(4_MiB, cudaStream_t{});
  call_all(h, cudaStream_t{});
  call_all(h, cudaStreamPerThread);
  const owned_stream<quarry::cuda> stream;
  call_all(h, stream_view{stream.get()});
#if __has_include(<cuda/stream_ref>)
  call_all(h, ::cuda::stream_ref(stream.get()));
#endif
}

TEST(GpuStreams, OrderAHeapBehindTheAllocationOfItsMemory) {
  const owned_stream<quarry::cuda> stream;
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 4u << 20, stream.get()), cudaSuccess);
  {
    const heap<slab, quarry::cuda> h(memory, 4_MiB, stream.get());
    EXPECT_NE(h.allocate(1000, stream.get()), nullptr);
    h.check(stream.get());
  }
  EXPECT_EQ(cudaFreeAsync(memory, stream.get()), cudaSuccess);
  stream.ref().synchronize();
}

}  // namespace
}  // namespace quarry
