// SPDX-License-Identifier: Apache-2.0
#include "executor/executor.hpp"
#include "executor/worker_pool.hpp"

#include <quarry/simt/detail/cpu_library.hpp>

#include <cstdlib>
#include <thread>

namespace quarry::simt::needs_quarry_cpu {

void run_grid(const detail::job& work, unsigned workers, std::uint64_t step_limit) {
  detail::worker_pool::instance().run(work, workers, step_limit);
}

unsigned default_workers() {
  if (const char* text = std::getenv("QUARRY_WORKERS")) {
    const int n = std::atoi(text);
    if (n > 0) return static_cast<unsigned>(n);
  }
  const unsigned n = std::thread::hardware_concurrency();
  return n == 0 ? 1 : n;
}

const cost_counts& counts_of_this_thread() {
  return detail::worker_pool::executor_of_this_thread().counts();
}

std::unique_ptr<detail::executor_interface> make_executor() {
  return std::make_unique<detail::executor>();
}

}  // namespace quarry::simt::needs_quarry_cpu
