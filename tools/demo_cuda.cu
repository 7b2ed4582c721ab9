// SPDX-License-Identifier: Apache-2.0
/// The demo on an NVIDIA GPU.

#include "bench_clock.hpp"
#include "demo_run.hpp"

namespace quarry::tool {

template <>
struct stopwatch<cuda> {
  /// The GPU's own clock: the way there and back is not the allocator's.
  template <class Kernel>
  static double time(const grid& g, const Kernel& kernel) {
    const bench_clock<cuda> clock;
    return clock.time([&] { clock.start(g, kernel); }).milliseconds / 1000.0;
  }
};

bool built_with_cuda() { return true; }

demo_machine describe_cuda() {
  int count = 0;
  const cudaError_t answer = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (answer != cudaSuccess)
    return {"cuda", "", 0, std::string("no GPU answers: ") + cudaGetErrorString(answer)};
  if (count == 0) return {"cuda", "", 0, "this machine has no GPU"};
  cudaDeviceProp device{};
  simt::check_cuda(cudaGetDeviceProperties(&device, 0), "asking for the GPU's name");
  std::size_t free = 0;
  std::size_t total = 0;
  simt::check_cuda(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return {"cuda", device.name, free, ""};
}

void run_demo_cuda(const demo_plan& plan, const demo_listener& listen, const demo_result& done) {
  run_demo<cuda>(plan, listen, done);
}

}  // namespace quarry::tool
