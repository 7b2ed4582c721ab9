// SPDX-License-Identifier: Apache-2.0
/// The demo on the CPU executor.

#include "demo_run.hpp"

#include <unistd.h>

namespace quarry::tool {

demo_machine describe_cpu() {
  const unsigned workers = simt::exec::worker_pool::default_workers();
  const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {"cpu",
          "the CPU executor, " + std::to_string(workers) + (workers == 1 ? " worker" : " workers"),
          memory, ""};
}

void run_demo_cpu(const demo_plan& plan, const demo_listener& listen, const demo_result& done) {
  run_demo<cpu>(plan, listen, done);
}

}  // namespace quarry::tool
