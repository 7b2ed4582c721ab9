// SPDX-License-Identifier: Apache-2.0
/// Takes the place of demo_cuda.cu where there is no nvcc.

#include "demo.hpp"

namespace quarry::tool {

bool built_with_cuda() { return false; }

demo_machine describe_cuda() {
  return {"cuda", "", 0,
          "this program was built without nvcc; configure with it (preset cuda) and build again"};
}

void run_demo_cuda(const demo_plan&, const demo_listener&, const demo_result&) {}

}  // namespace quarry::tool
