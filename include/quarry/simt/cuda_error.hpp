// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CUDA's return codes as exceptions; empty without nvcc.

#include <quarry/core/config.hpp>
#include <quarry/core/error.hpp>

#include <string>

#if QUARRY_CUDA
#include <cuda_runtime.h>

namespace quarry::simt {

inline void check_cuda(cudaError_t code, const char* doing) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();  // a failed call must not be reported twice
  throw error(std::string(doing) + ": " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) +
              ")");
}

}  // namespace quarry::simt
#endif
