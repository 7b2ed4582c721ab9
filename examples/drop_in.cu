// SPDX-License-Identifier: Apache-2.0
/// Quarry in place of CUDA's malloc in an ordinary kernel: one line in the kernel, one in main.
/// drop_in_portable.cpp is the same program for both backends.
#include <quarry/drop_in.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

using namespace quarry::literals;

constexpr int lines = 1024;
constexpr int width = 80;

/// Each thread reverses one line of the text, with the help of a copy.
__global__ void reverse_lines(char* text) {
  using quarry::drop_in::malloc, quarry::drop_in::free;  // without this line: CUDA's functions
  char* line = text + (blockIdx.x * blockDim.x + threadIdx.x) * width;
  int length = 0;
  while (length < width && line[length] != '\0') ++length;
  if (length == 0) return;
  char* copy = static_cast<char*>(malloc(length));
  if (copy == nullptr) return;  // the heap counts the failed allocation
  for (int i = 0; i < length; ++i) copy[i] = line[i];
  for (int i = 0; i < length; ++i) line[i] = copy[length - 1 - i];
  free(copy);
}

int main() {
  std::vector<char> text(lines * width);
  for (int i = 0; i < lines; ++i) std::snprintf(&text[i * width], width, "line %d of %d", i, lines);

  char* device_text = nullptr;
  if (cudaMalloc(&device_text, text.size()) != cudaSuccess) return 1;
  cudaMemcpy(device_text, text.data(), text.size(), cudaMemcpyHostToDevice);

  quarry::drop_in::init(16_MiB);  // once, before the first kernel
  reverse_lines<<<lines / 128, 128>>>(device_text);
  std::vector<char> reversed(text.size());
  cudaMemcpy(reversed.data(), device_text, text.size(), cudaMemcpyDeviceToHost);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(status));
    return 1;
  }
  cudaFree(device_text);

  quarry::drop_in::heap().check_empty();  // throws if an allocation failed or a block is still live
  std::printf("\"%s\" became \"%s\"\n", &text[7 * width], &reversed[7 * width]);
  return std::strcmp(&reversed[7 * width], "4201 fo 7 enil") == 0 ? 0 : 1;
}
