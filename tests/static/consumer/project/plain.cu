// SPDX-License-Identifier: Apache-2.0
// A CUDA program of one file, without lambdas:
//   nvcc -std=c++20 -I include plain.cu
#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>

using heap = quarry::heap<quarry::warp_bump>;

__global__ void allocate(heap::ref_type memory, std::uint32_t* served) {
  if (memory.malloc(64) != nullptr) atomicAdd(served, 1u);
}

int main() {
  using namespace quarry::literals;
  constexpr std::uint32_t blocks = 4;
  constexpr std::uint32_t threads = 64;
  const heap memory(16_MiB);
  const quarry::simt::array<std::uint32_t, quarry::cuda> served(1);
  allocate<<<blocks, threads>>>(memory.ref(), served.data());
  const std::uint32_t count = served.to_host()[0];
  std::printf("cuda: %u of %u lanes served\n", count, blocks * threads);
  return count == blocks * threads ? 0 : 1;
}
