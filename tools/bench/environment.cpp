// SPDX-License-Identifier: Apache-2.0
#include "bench/environment.hpp"

#include "common/parse.hpp"
#include "quarry_commit.hpp"

#include <quarry/core/bytes.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace quarry::tool {

backend_info choose_backend(const std::string& wanted) {
  if (wanted == "cpu") return describe_cpu();
  backend_info gpu = describe_cuda();
  if (gpu.problem.empty()) return gpu;
  if (wanted == "cuda") throw input_error("--backend cuda: " + gpu.problem);
  return describe_cpu();
}

bench_environment describe(const backend_info& backend) {
  bench_environment e = backend.name == "cuda" ? describe_bench_cuda() : describe_bench_cpu();
  e.commit = QUARRY_COMMIT;
  e.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now()));
  return e;
}

bench_environment describe_host() {
  bench_environment e = describe(describe_cpu());
  e.backend = "host";
  e.device = fmt::format("{} hardware threads", std::thread::hardware_concurrency());
  return e;
}

void check_heap(std::uint64_t size, const backend_info& backend, const std::string& option) {
  if (size > backend.memory)
    throw input_error(fmt::format("{}: a heap of {} is more than the memory of {}: {}", option,
                                  to_text(size), backend.name, to_text(backend.memory)));
}

}  // namespace quarry::tool
