// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The two machines that run device code.

#include <quarry/simt/config.hpp>

namespace quarry {

struct cpu;   // the executor of simt/executor: lanes are fibers, blocks run on worker threads
struct cuda;  // an NVIDIA GPU; only where nvcc compiles

#if QUARRY_CUDA
using default_machine = cuda;
#else
using default_machine = cpu;
#endif

template <class Machine>
concept machine = requires { typename Machine::is_machine; };

struct cpu {
  using is_machine = void;
  static constexpr const char* name = "cpu";
  // Blocks are dealt to this many imaginary multiprocessors, so that code which keeps one thing per
  // multiprocessor behaves the same on every host.
  static constexpr unsigned multiprocessors = 8;
};

struct cuda {
  using is_machine = void;
  static constexpr const char* name = "cuda";
};

}  // namespace quarry
