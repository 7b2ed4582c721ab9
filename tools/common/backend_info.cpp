// SPDX-License-Identifier: Apache-2.0
#include "common/backend_info.hpp"

#include <quarry/simt/launch.hpp>

#include <unistd.h>

namespace quarry::tool {

backend_info describe_cpu() {
  const unsigned workers = simt::default_workers();
  const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {"cpu",
          "the CPU executor, " + std::to_string(workers) + (workers == 1 ? " worker" : " workers"),
          memory, ""};
}

}  // namespace quarry::tool
