// SPDX-License-Identifier: Apache-2.0
/// Replaces cuda.cu in builds without nvcc.

#include "demo/demo.hpp"

namespace quarry::tool {

void run_demo_cuda(const demo_plan&, const demo_listener&, const demo_result&) {}

}  // namespace quarry::tool
