// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bench_fixture: what all workloads share. It owns the heap and the clock, repeats passes, and
/// checks blocks.
///
/// A measurement consists of
///   1. one warm-up pass; on the CPU backend a second one, which counts atomics
///   2. timed passes; no further pass starts once half of the time limit is used
///   3. one untimed pass that writes every block and reads it back; it is the last pass because a
///      used heap reveals more faults
///
/// The heap is reset before a measurement if the allocator supports that, so that measurements do
/// not depend on each other. Each pass frees what it allocated; if the allocator frees no single
/// block, the heap is reset after each pass. A heap that the caller of the fixture provides is
/// never reset.
///
/// A cold measurement has no warm-up pass. A launch without calling lanes loads the kernels, and
/// every pass runs on a new heap. If the system owns the heap, a process runs one cold pass only.

#include "bench/kernels/allocate.hpp"
#include "bench/kernels/checks.hpp"
#include "bench/kernels/clock.hpp"
#include "bench/request.hpp"
#include "bench/slow_filter.hpp"

#include <quarry/heap.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::tool {

inline bench_time summary(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  const double median = times.size() % 2 != 0 ? times[half] : (times[half - 1] + times[half]) / 2;
  return {median, times.front(), times.back()};
}

class bench_timer {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

inline bench_result skipped(std::string reason) {
  bench_result f;
  f.outcome = bench_outcome::skipped;
  f.note = std::move(reason);
  return f;
}

template <class Allocator, class Backend>
class bench_fixture {
 public:
  using heap_type = heap<Allocator, Backend>;
  using ref_type = typename heap_type::ref_type;
  static constexpr abilities can = Allocator::can;

  explicit bench_fixture(const bench_request& request)
      : request_(request), counts_(bench_checker::kinds) {
    if (request.heap_bytes >= can.min_pool)
      heap_ = std::make_shared<heap_type>(bytes(request.heap_bytes));
  }
  /// Measures on a heap that the caller provides.
  bench_fixture(bench_request request, std::shared_ptr<heap_type> heap)
      : request_(std::move(request)),
        heap_(std::move(heap)),
        counts_(bench_checker::kinds),
        is_shared_(true) {}

 protected:
  /// Times of one pass: of the kernel that allocates, or the only kernel, and of the kernel that
  /// frees.
  struct pass_times {
    bench_measured first;
    bench_measured second{-1, -1};
  };

  ref_type ref() const { return heap_->ref(); }

  static bench_lanes lanes_of(const bench_measurement& m) {
    return {m.lanes, m.lanes_per_warp, m.threads_per_block};
  }

  /// Resets the heap and fills it with `prepare`, which also runs after every later reset. `undo`
  /// frees what `prepare` allocated; it is used if the heap cannot be reset.
  void prefill(std::function<void()> prepare, std::function<void()> undo) {
    prepare_ = {};
    reset_heap();
    prepare_ = std::move(prepare);
    undo_ = std::move(undo);
    if (prepare_) prepare_();
  }
  /// Empties the heap after a measurement.
  void clear() { prefill({}, {}); }

  /// Returns the heap to the state after prefill().
  void reset_heap() {
    if (is_shared_ || (can.frees_one && !can.frees_all)) {
      if (undo_) undo_();
    } else if constexpr (can.frees_all) {
      heap_->reset();
    } else {
      recreate_heap();
      return;
    }
    if (prepare_) prepare_();
  }
  /// Ends a pass of an allocator that cannot free single blocks.
  void reset_if_frees_nothing() {
    if constexpr (!can.frees_one) reset_heap();
  }

  template <class Kernel>
  bench_measured timed(const grid& g, const Kernel& kernel) const {
    return clock_.time([&] { clock_.start(g, kernel); });
  }

  /// Returns why the allocator cannot run the measurement; empty if it can.
  std::string reason_to_skip(const bench_measurement& m) const {
    if (!heap_) return "needs a heap of " + to_text(can.min_pool);
    std::uint64_t max_size = 0;
    std::uint64_t requested = 0;
    for (const bench_load& l : m.all_loads()) {
      max_size = std::max(max_size, l.size);
      requested = std::max(requested, saturating_multiply(m.lanes * l.batch * m.rounds,
                                                          align_up(l.size, block_alignment)));
    }
    requested = saturating_add(requested, m.occupied * (request_.heap_bytes / 100));
    if (max_size > can.max_size) return "largest block: " + to_text(can.max_size);
    if (can.overwrites && requested > heap_->pool_bytes())
      return "would overwrite live blocks: a pass requests " + to_text(requested);
    return {};
  }

  /// Runs warm-up and timed passes, and fills times and atomics of `f`. `calls` and `second_calls`
  /// are the calls of the first and the second kernel of a pass. pass(lanes) runs one pass.
  template <class Pass>
  void time_passes(bench_result& f, const bench_measurement& m, double calls, double second_calls,
                   Pass&& pass) {
    const bench_timer timer;
    const auto has_time_left = [&] { return timer.seconds() < request_.time_limit / 2; };
    const bench_lanes all_lanes = lanes_of(m);
    std::vector<pass_times> passes;
    pass_times counted;
    if (m.cold) {
      (void)pass({0, m.lanes_per_warp, m.threads_per_block});
      do {
        if (can.owns_pool) recreate_heap();
        passes.push_back(pass(all_lanes));
      } while (can.owns_pool && passes.size() < request_.repeats && has_time_left());
      if (can.owns_pool) recreate_heap();
      clock_.count(true);
      if (can.owns_pool && bench_clock<Backend>::counts) counted = pass(all_lanes);
    } else {
      clock_.count(true);
      counted = pass(all_lanes);
      if (bench_clock<Backend>::counts) counted = pass(all_lanes);  // the count of a warm heap
      clock_.count(false);
      if (!bench_clock<Backend>::counts && !has_time_left())
        passes.push_back(counted);  // too slow for another pass
      while (passes.empty() || (passes.size() < request_.repeats && has_time_left()))
        passes.push_back(pass(all_lanes));
    }
    clock_.count(false);
    if (counted.first.atomics >= 0) f.atomics = counted.first.atomics / calls;
    if (counted.second.atomics >= 0) f.free_atomics = counted.second.atomics / second_calls;
    std::vector<double> first;
    std::vector<double> second;
    for (const pass_times& p : passes) {
      first.push_back(p.first.milliseconds);
      if (p.second.milliseconds >= 0) second.push_back(p.second.milliseconds);
    }
    f.repeats = first.size();
    f.time = summary(first);
    f.free_time = summary(second);
  }

  bench_checker checker() const {
    const memory_range pool = heap_->pool();
    const auto begin = reinterpret_cast<std::uintptr_t>(pool.begin);
    if (!can.owns_pool) return {0, ~std::uintptr_t{0}, counts_.data()};
    return {begin, begin + pool.size, counts_.data()};
  }

  /// Describes the blocks that are live after `round`, for the kernels that write and check them.
  bench_write contents(void* const* blocks, std::uint64_t count, const bench_sizes& sizes,
                       std::uint32_t round) const {
    constexpr std::uint32_t lanes_per_memory_block = std::is_same_v<Backend, cpu> ? 1 : 32;
    return {blocks, count, lanes_per_memory_block, sizes, round, checker()};
  }
  void write(const bench_write& all) const { launch<Backend>(all.launch_grid(), all); }
  void check(const bench_write& all) const {
    simt::array<std::uint32_t, Backend> corrupt_flags(all.count);
    launch<Backend>(all.launch_grid(), bench_check{all, corrupt_flags.data()});
  }
  void clear_counts() { counts_.fill_zero(); }
  void read_counts(bench_result& f) const {
    const std::vector<std::uint64_t> n = counts_.to_host();
    f.failures = n[bench_checker::failures];
    f.corrupt = n[bench_checker::corrupt];
    f.misaligned = n[bench_checker::misaligned];
  }

  bench_request request_;
  std::shared_ptr<heap_type> heap_;  // null if the heap would be too small
  simt::array<std::uint64_t, Backend> counts_;
  bench_clock<Backend> clock_{request_.queued};

 private:
  void recreate_heap() {
    heap_.reset();  // before the next heap takes memory
    heap_ = std::make_shared<heap_type>(bytes(request_.heap_bytes));
    if (prepare_) prepare_();
  }

  bool is_shared_ = false;
  std::function<void()> prepare_;
  std::function<void()> undo_;
};

/// Runs all measurements of a request with Bench<Allocator, Backend>. An exception becomes the
/// result of the current measurement and is rethrown: after a CUDA error the process cannot use the
/// GPU.
template <class Bench>
void run_measurements(const bench_request& request, const bench_callback& emit) {
  std::size_t number = 0;
  bench_slow_filter filter(request.time_limit);
  try {
    Bench bench(request);
    for (; number < request.measurements.size(); ++number) {
      const bench_measurement& m = request.measurements[number];
      const std::string reason = filter.reason_to_skip(m);
      const bench_timer timer;
      bench_result f = reason.empty() ? bench.run(m) : given_up(reason);
      f.seconds = timer.seconds();
      filter.note(m, f.seconds);
      emit(m, f);
    }
  } catch (const std::exception& e) {
    bench_result f;
    f.outcome = bench_outcome::failed;
    f.note = e.what();
    emit(request.measurements[number], f);
    throw;
  }
}

}  // namespace quarry::tool
