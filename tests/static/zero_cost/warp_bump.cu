// SPDX-License-Identifier: Apache-2.0
/// The warp-aggregated bump allocator twice: with the library, and with CUDA's intrinsics.
/// compare.py compares the registers and the atomic instructions of the two kernels.

#include <quarry/heap.hpp>

#include <cstdint>

extern "C" __global__ void through_the_library(
    quarry::heap_ref<quarry::warp_bump, quarry::cuda> heap, std::uint64_t size, void** out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = heap.malloc(size);
}

// The same algorithm without the library.
struct counter_pool {
  char* memory;
  unsigned long long size;
  unsigned long long* next;
};

__device__ void give_back(const counter_pool& pool, unsigned long long first,
                          unsigned long long end) {
  if (first < pool.size && atomicCAS(pool.next, end, first) == end) return;
  atomicMin(pool.next, pool.size);
}

extern "C" __global__ void by_hand(counter_pool pool, std::uint64_t n, void** out) {
  const unsigned long long size = n <= pool.size ? (n + 15) & ~15ull : 0;
  const unsigned group = __activemask();
  unsigned below;
  unsigned lane;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  unsigned long long before = 0;
  unsigned long long total = 0;
  unsigned long long bits =
      static_cast<unsigned long long>(__reduce_or_sync(group, static_cast<unsigned>(size >> 32)))
          << 32 |
      __reduce_or_sync(group, static_cast<unsigned>(size));
  for (; bits != 0; bits &= bits - 1) {
    const int b = __ffsll(static_cast<long long>(bits)) - 1;
    const unsigned votes = __ballot_sync(group, size >> b & 1);
    before += static_cast<unsigned long long>(__popc(votes & below)) << b;
    total += static_cast<unsigned long long>(__popc(votes)) << b;
  }
  const int leader = __ffs(static_cast<int>(group)) - 1;
  unsigned long long start = 0;
  if (lane == leader) start = atomicAdd(pool.next, total);
  start = __shfl_sync(group, start, leader);
  const unsigned long long first = start + before;
  void* block = nullptr;
  if (size != 0) {
    if (first + size <= pool.size) {
      block = pool.memory + first;
    } else if (first <= pool.size || before == 0) {
      give_back(pool, first, start + total);
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = block;
}
