// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The functions of the CPU backend that are defined in the library quarry::cpu (src/executor).
///
/// A linker that reports one of them as undefined reports a program that runs kernels on the CPU
/// without the library. With CMake, add
///
///   target_link_libraries(program PRIVATE quarry::cpu)
///
/// and otherwise link libquarry_cpu and libboost_context. CUDA kernels do not need the library.

#include <quarry/simt/detail/executor_interface.hpp>

#include <cstdint>
#include <memory>

namespace quarry::simt::needs_quarry_cpu {

/// Effects: runs a grid on `workers` OS threads, the calling thread among them, and waits for its
/// end. 0 workers: default_workers().
/// Throws: the exception of the first block that fails, after all other blocks have stopped.
/// Thread safety: any number of host threads may call; one grid runs at a time.
void run_grid(const detail::job& work, unsigned workers, std::uint64_t step_limit);

/// Returns: the value of the environment variable QUARRY_WORKERS, or the number of hardware
/// threads.
unsigned default_workers();

/// Returns: the operations of all lanes that ran on the calling thread in run_grid().
const cost_counts& counts_of_this_thread();

/// Returns: an executor for run_schedule().
std::unique_ptr<detail::executor_interface> make_executor();

}  // namespace quarry::simt::needs_quarry_cpu
