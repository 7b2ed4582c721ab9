// SPDX-License-Identifier: Apache-2.0
/// One heap, two streams: kernels of both streams allocate concurrently, and the host waits once.
#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>

using namespace quarry::literals;

/// Each thread allocates a block, writes its number, and stores the pointer.
__global__ void produce(quarry::heap_ref<> heap, std::uint64_t** blocks, std::uint64_t first) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  auto* const block = static_cast<std::uint64_t*>(heap.malloc(sizeof(std::uint64_t)));
  if (block != nullptr) *block = first + i;
  blocks[i] = block;
}

/// Each thread adds its block's number to the sum and frees the block.
__global__ void consume(quarry::heap_ref<> heap, std::uint64_t** blocks, unsigned long long* sum) {
  std::uint64_t* const block = blocks[blockIdx.x * blockDim.x + threadIdx.x];
  if (block == nullptr) return;
  atomicAdd(sum, *block);
  heap.free(block);
}

int main() {
  constexpr unsigned blocks = 64, threads = 256, n = blocks * threads;
  cudaStream_t streams[2];
  for (cudaStream_t& s : streams)
    if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess) return 1;

  std::uint64_t** pointers[2];
  unsigned long long* sum;
  for (auto& p : pointers)
    if (cudaMalloc(&p, n * sizeof *p) != cudaSuccess) return 1;
  if (cudaMalloc(&sum, sizeof *sum) != cudaSuccess) return 1;

  // The first stream initialises the heap and the sum; an event orders the second stream behind it.
  const quarry::heap<> heap(64_MiB, streams[0]);
  cudaMemsetAsync(sum, 0, sizeof *sum, streams[0]);
  cudaEvent_t initialised;
  cudaEventCreate(&initialised);
  cudaEventRecord(initialised, streams[0]);
  cudaStreamWaitEvent(streams[1], initialised);

  for (int s = 0; s < 2; ++s) {
    produce<<<blocks, threads, 0, streams[s]>>>(heap.ref(), pointers[s], s * n);
    consume<<<blocks, threads, 0, streams[s]>>>(heap.ref(), pointers[s], sum);
  }
  for (const cudaStream_t s : streams)
    if (cudaStreamSynchronize(s) != cudaSuccess) return 1;
  heap.check_empty(streams[0]);  // throws if an allocation failed or a block is still live

  constexpr std::uint64_t expected = std::uint64_t{2 * n} * (2 * n - 1) / 2;
  unsigned long long result = 0;
  cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
  std::printf("sum %llu, expected %llu\n", result, static_cast<unsigned long long>(expected));
  for (auto* p : pointers) cudaFree(p);
  cudaFree(sum);
  cudaEventDestroy(initialised);
  for (const cudaStream_t s : streams) cudaStreamDestroy(s);
  return result == expected ? 0 : 1;
}
