// SPDX-License-Identifier: Apache-2.0
#include "common/backend_info.hpp"

#include <quarry/simt/cuda_error.hpp>

namespace quarry::tool {

bool built_with_cuda() { return true; }

backend_info describe_cuda() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (result != cudaSuccess)
    return {"cuda", "", 0, std::string("no GPU answers: ") + cudaGetErrorString(result)};
  if (count == 0) return {"cuda", "", 0, "this host has no GPU"};
  cudaDeviceProp device{};
  simt::check_cuda(cudaGetDeviceProperties(&device, 0), "querying the GPU's name");
  std::size_t free = 0;
  std::size_t total = 0;
  simt::check_cuda(cudaMemGetInfo(&free, &total), "querying the GPU's memory");
  return {"cuda", device.name, free, ""};
}

}  // namespace quarry::tool
