// SPDX-License-Identifier: Apache-2.0
/// Takes the place of demo_cuda.cu where there is no nvcc.

#include "demo/demo.hpp"

namespace quarry::tool {

void run_demo_cuda(const demo_plan&, const demo_listener&, const demo_result&) {}

}  // namespace quarry::tool
