// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The interface between `quarry demo` and its measurement. The measurement is a template that is
/// compiled once per backend (run.hpp); this header is shared by both compilers and the command
/// line.

#include "common/parse.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct demo_plan {
  std::uint64_t lanes = 0;
  size_range sizes{16, 512};  // sizes are distributed uniformly over powers of two
  std::uint64_t pool = 0;
  unsigned timed_rounds = 3;
};

/// The result of one allocator.
struct demo_row {
  std::string_view name;
  std::string failure;          // first failed check; empty: all checks passed
  std::uint64_t checked = 0;    // blocks that passed all checks
  std::uint64_t requested = 0;  // bytes
  std::uint64_t pool = 0;
  std::uint64_t metadata = 0;
  double mallocs_per_second = -1;  // maximum over the timed rounds; negative: not measured
  double frees_per_second = -1;
};

/// Reports progress: the name of the allocator, the current stage, the completed fraction of the
/// demo.
using demo_listener = std::function<void(std::string_view name, const char* stage, double done)>;
/// Receives the result of each allocator.
using demo_result = std::function<void(const demo_row&)>;

void run_demo_cpu(const demo_plan& plan, const demo_listener& listen, const demo_result& done);
void run_demo_cuda(const demo_plan& plan, const demo_listener& listen, const demo_result& done);

}  // namespace quarry::tool
