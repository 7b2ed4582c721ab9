// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The backends that this program can run kernels on, described for the command line.

#include <cstdint>
#include <string>

namespace quarry::tool {

struct backend_info {
  std::string name;          // "cpu" or "cuda"
  std::string description;   // one line for people: the GPU's name, or the executor's workers
  std::uint64_t memory = 0;  // bytes of memory that the backend has; for a GPU, bytes that are free
  std::string problem;       // why the backend cannot run; empty if it can
};

/// True if nvcc compiled the CUDA parts of this program.
bool built_with_cuda();
backend_info describe_cpu();
backend_info describe_cuda();

}  // namespace quarry::tool
