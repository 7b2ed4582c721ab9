// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bench_clock<Backend>: runs kernels and says how long they took. CUDA's events on a GPU; on the CPU the
/// steady clock, and the atomics that the lanes executed.

#include <quarry/simt/cuda_error.hpp>
#include <quarry/simt/explore.hpp>
#include <quarry/simt/launch.hpp>

#include <chrono>
#include <cstdint>

namespace quarry::tool {

struct bench_measured {
  double milliseconds = 0;
  double atomics = -1;  // negative: not counted
};

template <class Backend>
class bench_clock;

template <>
class bench_clock<cpu> {
 public:
  static constexpr bool counts = true;
  explicit bench_clock(bool /*queued*/ = false) {}

  /// While counting, one worker runs all blocks in order: the count is exact, and the same each time.
  void count(bool on) { counting_ = on; }

  /// `work` gives its kernels to start().
  template <class Work>
  bench_measured time(Work&& work) const {
    const std::uint64_t before = simt::counts_of_this_thread().atomics;
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    const auto atomics = static_cast<double>(simt::counts_of_this_thread().atomics - before);
    return {taken.count(), counting_ ? atomics : -1};
  }
  template <class Kernel>
  void start(const grid& g, const Kernel& kernel) const {
    grid now = g;
    if (counting_) now.workers = 1;
    launch<cpu>(now, kernel);
  }

 private:
  bool counting_ = false;
};

#if QUARRY_CUDA
/// Keeps a GPU busy, by one lane.
struct bench_delay {
  std::uint64_t nanoseconds;

  QUARRY_DEVICE static std::uint64_t now() {
    std::uint64_t t = 0;
#if QUARRY_DEVICE_CODE
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t) : : "memory");
#endif
    return t;
  }
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t begin = now();
    while (now() - begin < nanoseconds) {
    }
  }
};

/// As it stands, an idle GPU notes the time at once, and then waits for the host to launch: a slow host is in every time, and
/// in those of many small kernels more than the kernels. With `queued` it is kept busy until it has all of them.
template <>
class bench_clock<cuda> {
 public:
  static constexpr bool counts = false;
  explicit bench_clock(bool queued = false) : queued_(queued) {}
  void count(bool) {}

  /// From before the first kernel that `work` starts to after the last; they are not waited for in between.
  template <class Work>
  bench_measured time(Work&& work) const {
    if (queued_) start({1, 1}, bench_delay{long_enough});
    simt::check_cuda(cudaEventRecord(begin_.handle), "recording an event");
    work();
    simt::check_cuda(cudaEventRecord(end_.handle), "recording an event");
    simt::check_cuda(cudaEventSynchronize(end_.handle), "kernel");
    float milliseconds = 0;
    simt::check_cuda(cudaEventElapsedTime(&milliseconds, begin_.handle, end_.handle),
                     "timing a kernel");
    return {milliseconds, -1};
  }
  template <class Kernel>
  void start(const grid& g, const Kernel& kernel) const {
    simt::run_kernel<<<g.blocks, g.threads>>>(kernel);
    simt::check_cuda(cudaGetLastError(), "kernel launch");
  }

 private:
  struct event {
    cudaEvent_t handle{};
    event() { simt::check_cuda(cudaEventCreate(&handle), "making an event"); }
    ~event() { (void)cudaEventDestroy(handle); }
    event(const event&) = delete;
    event& operator=(const event&) = delete;
  };
  /// Nanoseconds in which a host launches ten kernels and more.
  static constexpr std::uint64_t long_enough = 400'000;

  bool queued_;
  event begin_;
  event end_;
};
#endif

}  // namespace quarry::tool
