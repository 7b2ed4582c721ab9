// SPDX-License-Identifier: Apache-2.0
#include "consumer.hpp"

#include <cstdio>

// As users write it: a heap_ref is a kernel argument.
__global__ void kernel(quarry::heap_ref<> heap, std::uint32_t* served) { use(heap, served); }

int main() {
  using namespace quarry::literals;
  const quarry::heap<> heap(16_MiB);
  quarry::simt::array<std::uint32_t, quarry::cuda> served(1);
  served.fill_zero();
  kernel<<<blocks, threads>>>(heap.ref(), served.data());
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
    std::printf("kernel: %s\n", cudaGetErrorString(status));
    return 1;
  }

  const std::uint32_t here = served.to_host()[0];
  const std::uint32_t there = served_in_other_unit(heap);
  std::printf("cuda: %u and %u of %u lanes served\n", here, there, blocks * threads);
  return here == blocks * threads && there == blocks * threads ? 0 : 1;
}
