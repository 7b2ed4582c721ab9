// SPDX-License-Identifier: Apache-2.0
/// Quarry in place of CUDA's malloc, in an ordinary kernel: one line in the kernel, one in main.
/// drop_in_anywhere.cpp is the same for both machines.
#include <quarry/drop_in.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

using namespace quarry::literals;

constexpr int lines = 1024;
constexpr int width = 80;

__global__ void mirror_lines(char* text) {
  using quarry::drop_in::malloc, quarry::drop_in::free;  // without this line they are CUDA's
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

int main() {
  std::vector<char> text(lines * width);
  for (int i = 0; i < lines; ++i) std::snprintf(&text[i * width], width, "line %d of %d", i, lines);

  char* on_gpu = nullptr;
  if (cudaMalloc(&on_gpu, text.size()) != cudaSuccess) return 1;
  cudaMemcpy(on_gpu, text.data(), text.size(), cudaMemcpyHostToDevice);

  quarry::drop_in::init(16_MiB);  // before the first kernel
  mirror_lines<<<lines / 128, 128>>>(on_gpu);
  std::vector<char> mirrored(text.size());
  cudaMemcpy(mirrored.data(), on_gpu, text.size(), cudaMemcpyDeviceToHost);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(status));
    return 1;
  }
  cudaFree(on_gpu);

  quarry::drop_in::heap().check_empty();  // throws if a request was refused, or a block left behind
  std::printf("\"%s\" became \"%s\"\n", &text[7 * width], &mirrored[7 * width]);
  return std::strcmp(&mirrored[7 * width], "4201 fo 7 enil") == 0 ? 0 : 1;
}
