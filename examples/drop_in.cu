// SPDX-License-Identifier: Apache-2.0
/// Quarry in place of CUDA's malloc, in an ordinary kernel.
///
///   -  char* copy = static_cast<char*>(malloc(length));      +  … heap.malloc(length) …
///   -  free(copy);                                           +  heap.free(copy);
///
/// Two lines change, and the heap is an argument. drop_in_anywhere.cpp is the same for both machines.
#include <quarry/heap.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

using namespace quarry::literals;
using allocator = quarry::cfmmalloc;  // or any other: see `quarry list`

constexpr int lines = 1024;
constexpr int width = 80;

// Before.
__global__ void mirror_lines(char* text) {
  char* line = text + (blockIdx.x * blockDim.x + threadIdx.x) * width;
  int length = 0;
  while (length < width && line[length] != '\0') ++length;
  if (length == 0) return;
  char* copy = static_cast<char*>(malloc(length));
  if (copy == nullptr) return;
  for (int i = 0; i < length; ++i) copy[i] = line[i];
  for (int i = 0; i < length; ++i) line[i] = copy[length - 1 - i];
  free(copy);
}

// After.
__global__ void mirror_lines(char* text, quarry::heap_ref<allocator> heap) {
  char* line = text + (blockIdx.x * blockDim.x + threadIdx.x) * width;
  int length = 0;
  while (length < width && line[length] != '\0') ++length;
  if (length == 0) return;
  char* copy = static_cast<char*>(heap.malloc(length));
  if (copy == nullptr) return;
  for (int i = 0; i < length; ++i) copy[i] = line[i];
  for (int i = 0; i < length; ++i) line[i] = copy[length - 1 - i];
  heap.free(copy);
}

int main() {
  std::vector<char> text(lines * width);
  for (int i = 0; i < lines; ++i) std::snprintf(&text[i * width], width, "line %d of %d", i, lines);

  char* on_gpu = nullptr;
  if (cudaMalloc(&on_gpu, text.size()) != cudaSuccess) return 1;
  cudaMemcpy(on_gpu, text.data(), text.size(), cudaMemcpyHostToDevice);

  const quarry::heap<allocator> heap(16_MiB);
  mirror_lines<<<lines / 128, 128>>>(on_gpu, heap.ref());
  std::vector<char> mirrored(text.size());
  cudaMemcpy(mirrored.data(), on_gpu, text.size(), cudaMemcpyDeviceToHost);

  mirror_lines<<<lines / 128, 128>>>(on_gpu);  // CUDA's malloc turns them round again
  std::vector<char> again(text.size());
  cudaMemcpy(again.data(), on_gpu, text.size(), cudaMemcpyDeviceToHost);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(status));
    return 1;
  }
  cudaFree(on_gpu);

  const auto live = heap.statistics().live_blocks.value_or(0);
  std::printf("\"%s\" became \"%s\"; %llu blocks left\n", &text[7 * width], &mirrored[7 * width],
              static_cast<unsigned long long>(live));
  const bool turned = std::strcmp(&mirrored[7 * width], "4201 fo 7 enil") == 0;
  return turned && again == text && live == 0 ? 0 : 1;
}
