// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `quarry demo` asks of a machine. The run itself is a template, compiled once a machine
/// (demo_run.hpp); this header is all that both compilers and the command line share.

#include "common/parse.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct demo_plan {
  std::uint64_t lanes = 0;
  size_range sizes{16, 512};  // powers of two between them are equally likely
  std::uint64_t pool = 0;
  unsigned timed_rounds = 3;
};

/// How one allocator did.
struct demo_row {
  std::string_view name;
  std::string failure;        // empty: every check passed
  std::uint64_t checked = 0;  // blocks written, read back, found disjoint and in place
  std::uint64_t asked = 0;    // bytes
  std::uint64_t pool = 0;
  std::uint64_t metadata = 0;
  double mallocs_per_second = -1;  // the best of the timed rounds; negative: not measured
  double frees_per_second = -1;
};

/// Called as the run goes on: an allocator's name, what is done to it, the share of the demo.
using demo_listener = std::function<void(std::string_view name, const char* stage, double done)>;
/// Called when an allocator is done.
using demo_result = std::function<void(const demo_row&)>;

void run_demo_cpu(const demo_plan& plan, const demo_listener& listen, const demo_result& done);
void run_demo_cuda(const demo_plan& plan, const demo_listener& listen, const demo_result& done);

}  // namespace quarry::tool
