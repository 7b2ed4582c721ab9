// SPDX-License-Identifier: Apache-2.0
/// Replaces backend_info_cuda.cu in a build without nvcc.

#include "common/backend_info.hpp"

namespace quarry::tool {

bool built_with_cuda() { return false; }

backend_info describe_cuda() {
  return {"cuda", "", 0,
          "this program was built without nvcc; configure with it (preset cuda) and build again"};
}

}  // namespace quarry::tool
