// SPDX-License-Identifier: Apache-2.0
/// The kd-tree measurement on the CUDA backend.

#include "workloads/kd_tree_run.hpp"

namespace quarry::tool {

kd_tree_result measure_kd_tree_cuda(const apps::scene& s, const apps::kd_input& input,
                                    const apps::kd_limits& limits, const kd_tree_request& request) {
  return measure_kd_tree_named<quarry::cuda>(s, input, limits, request);
}

}  // namespace quarry::tool
