// SPDX-License-Identifier: Apache-2.0
#pragma once
/// allocation_id: tells an allocation of a GPU from every other allocation of the process. CUDA
/// uses addresses again, also after cudaDeviceReset, but never these identifiers. The header is
/// empty without nvcc.

#include <quarry/core/config.hpp>
#include <quarry/simt/cuda_error.hpp>

#if QUARRY_CUDA
#include <cuda.h>

#include <optional>
#include <string>

namespace quarry::simt {

/// Returns the identifier of the allocation that holds p, or nothing if there is none. Does not
/// wait for the GPU. Throws error if CUDA can not answer, for example after a kernel has failed.
inline std::optional<unsigned long long> allocation_id(const void* p) {
  check_cuda(cudaFree(nullptr), "initialising CUDA");  // the driver needs a context
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  constexpr const char* name = "cuPointerGetAttribute";
  check_cuda(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result),
             name);
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    throw error(std::string("this CUDA driver has no ") + name);
  unsigned long long id = 0;
  const auto query = reinterpret_cast<decltype(&::cuPointerGetAttribute)>(found);
  const CUresult code =
      query(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, reinterpret_cast<CUdeviceptr>(p));
  if (code == CUDA_ERROR_INVALID_VALUE) return std::nullopt;
  if (code != CUDA_SUCCESS)
    throw error(std::string(name) + " failed with error " + std::to_string(static_cast<int>(code)));
  return id;
}

}  // namespace quarry::simt
#endif
