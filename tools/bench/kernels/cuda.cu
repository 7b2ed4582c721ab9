// SPDX-License-Identifier: Apache-2.0
/// The benchmark on an NVIDIA GPU: dispatch to the source files of the workloads, the baseline, and
/// the description of the GPU.

#include "bench/kernels/baseline.hpp"
#include "bench/kernels/cuda.hpp"
#include "bench/kernels/dispatch.hpp"

#include <fstream>

namespace quarry::tool {
namespace {

std::string version(int number) {  // 13020: 13.2
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

void run_bench_cuda(const bench_request& request, const bench_callback& emit) {
  if (request.allocator == baseline_name)
    return run_measurements<baseline_bench<cuda>>(request, emit);
  switch (kind_of(request)) {
    case bench_runner_kind::loops: return run_bench_loops_cuda(request, emit);
    case bench_runner_kind::calls: return run_bench_calls_cuda(request, emit);
    default: return run_bench_blocks_cuda(request, emit);
  }
}

bench_environment describe_bench_cuda() {
  bench_environment e;
  e.backend = "cuda";
  cudaDeviceProp device{};
  simt::check_cuda(cudaGetDeviceProperties(&device, 0), "querying the GPU's name");
  e.device = device.name;
  int number = 0;
  if (std::ifstream file("/sys/module/nvidia/version"); !(file >> e.driver)) {
    simt::check_cuda(cudaDriverGetVersion(&number), "querying the driver's version");
    e.driver = "for CUDA " + version(number);
  }
  simt::check_cuda(cudaRuntimeGetVersion(&number), "querying CUDA's version");
  e.cuda = version(number);
  e.compiler = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
               std::to_string(__CUDACC_VER_MINOR__) + "." + std::to_string(__CUDACC_VER_BUILD__);
  return e;
}

}  // namespace quarry::tool
