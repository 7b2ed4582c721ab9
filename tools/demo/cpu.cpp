// SPDX-License-Identifier: Apache-2.0
/// The demo on the CPU backend.

#include "demo/run.hpp"

namespace quarry::tool {

void run_demo_cpu(const demo_plan& plan, const demo_listener& listen, const demo_result& done) {
  run_demo<cpu>(plan, listen, done);
}

}  // namespace quarry::tool
