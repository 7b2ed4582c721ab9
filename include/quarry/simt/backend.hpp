// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The backends that run device code: `cpu` and `cuda`.

#include <quarry/core/config.hpp>

namespace quarry {

struct cpu;   // the executor in quarry::cpu: lanes are fibers, blocks run on worker threads
struct cuda;  // an NVIDIA GPU; only in files that nvcc compiles

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
  // The number of multiprocessors that sm_id() simulates. It is constant, so that code with state
  // per multiprocessor behaves the same on every host.
  static constexpr unsigned multiprocessors = 8;
};

struct cuda {
  using is_backend = void;
  static constexpr const char* name = "cuda";
};

}  // namespace quarry
