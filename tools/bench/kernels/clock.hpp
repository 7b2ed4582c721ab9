// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bench_clock<Backend>: runs kernels and measures their time, by CUDA events on a GPU and by the
/// steady clock on the CPU backend. The CPU backend also counts the atomics that the lanes execute.

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

  /// Switches counting on or off. While counting, one worker thread runs all thread blocks in
  /// order, so that the count is exact and reproducible.
  void count(bool on) { counting_ = on; }

  /// Measures `work`, which launches its kernels with start().
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
/// A kernel of one lane that keeps the GPU busy for a time.
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

/// An idle GPU records the first event at once, and then waits for the host to launch the kernels.
/// The time of many small kernels then measures mostly the host. With `queued`, bench_delay keeps
/// the GPU busy until all kernels are in the queue.
template <>
class bench_clock<cuda> {
 public:
  static constexpr bool counts = false;
  explicit bench_clock(bool queued = false) : queued_(queued) {}
  void count(bool) {}

  /// Measures from before the first kernel of `work` to after the last. The host does not
  /// synchronize in between.
  template <class Work>
  bench_measured time(Work&& work) const {
    if (queued_) start({1, 1}, bench_delay{queue_time});
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
    event() { simt::check_cuda(cudaEventCreate(&handle), "creating an event"); }
    ~event() { (void)cudaEventDestroy(handle); }
    event(const event&) = delete;
    event& operator=(const event&) = delete;
  };
  /// Nanoseconds. A host launches more than ten kernels in this time.
  static constexpr std::uint64_t queue_time = 400'000;

  bool queued_;
  event begin_;
  event end_;
};
#endif

}  // namespace quarry::tool
