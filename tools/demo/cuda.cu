// SPDX-License-Identifier: Apache-2.0
/// The demo on the CUDA backend.

#include "bench/kernels/clock.hpp"
#include "demo/run.hpp"

namespace quarry::tool {

template <>
struct stopwatch<cuda> {
  /// Uses CUDA events, which exclude the launch latency.
  template <class Kernel>
  static double time(const grid& g, const Kernel& kernel) {
    const bench_clock<cuda> clock;
    return clock.time([&] { clock.start(g, kernel); }).milliseconds / 1000.0;
  }
};

void run_demo_cuda(const demo_plan& plan, const demo_listener& listen, const demo_result& done) {
  run_demo<cuda>(plan, listen, done);
}

}  // namespace quarry::tool
