// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Converts CUDA error codes to exceptions. The header is empty without nvcc.

#include <quarry/core/config.hpp>
#include <quarry/core/error.hpp>

#include <string>

#if QUARRY_CUDA
#include <cuda_runtime.h>

namespace quarry::simt {

/// Throws: quarry::error if `code` is an error. `doing` names the call in the message.
inline void check_cuda(cudaError_t code, const char* doing) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();  // clears the error, so that it is reported once
  throw error(std::string(doing) + ": " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) +
              ")");
}

}  // namespace quarry::simt
#endif
