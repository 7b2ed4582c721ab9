// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The two machines that run device code.

#include <quarry/core/config.hpp>

namespace quarry {

struct cpu;   // the executor of simt/executor: lanes are fibers, blocks run on worker threads
struct cuda;  // an NVIDIA GPU; only where nvcc compiles

#if QUARRY_CUDA
using default_backend = cuda;
#else
using default_backend = cpu;
#endif

template <class Backend>
concept backend = requires {
  typename Backend::is_backend;
};

struct cpu {
  using is_backend = void;
  static constexpr const char* name = "cpu";
  // Blocks are dealt to this many imaginary multiprocessors, so that code which keeps one thing per
  // multiprocessor behaves the same on every host.
  static constexpr unsigned multiprocessors = 8;
};

struct cuda {
  using is_backend = void;
  static constexpr const char* name = "cuda";
};

}  // namespace quarry
