// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Workloads that show how much memory a heap takes over time while threads free each other's
/// objects. A Heap has allocate(n) and deallocate(p).
///
/// A table of objects is shared by all threads. A step empties a random entry, and fills it unless
/// the live objects already have the wanted bytes, so lifetimes are random and the number of live
/// bytes stays near its target. Sizes are distributed evenly on a logarithmic scale.
///
///   exchange  all threads take steps; 16 B ... 64 KiB
///   uniform   the same; sizes are distributed evenly on a linear scale
///   shift     the same; sizes lie in one octave at a time, a different one every few steps
///   pipeline  half of the threads allocate, half free
///   threads   a thread ends after a few steps, and another one starts
///   burst     the number of live bytes goes up to the target and down to a tenth of it

#include "region/workloads.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace quarry::tool {

enum class stress_kind { exchange, uniform, shift, pipeline, threads, burst };

inline constexpr std::pair<std::string_view, stress_kind> stress_kinds[] = {
    {"exchange", stress_kind::exchange}, {"uniform", stress_kind::uniform},
    {"shift", stress_kind::shift},       {"pipeline", stress_kind::pipeline},
    {"threads", stress_kind::threads},   {"burst", stress_kind::burst}};

inline std::optional<stress_kind> stress_kind_of(std::string_view name) {
  for (const auto& [known, kind] : stress_kinds)
    if (known == name) return kind;
  return std::nullopt;
}

struct stress_options {
  stress_kind kind = stress_kind::exchange;
  unsigned threads = 4;
  std::uint64_t live = std::uint64_t{90} << 20;  // wanted bytes of live objects
  double seconds = 10;
  std::uint64_t steps = ~std::uint64_t{0};  // of all threads: a run ends after these, if earlier
};

template <class Heap>
class stress {
 public:
  stress(Heap& heap, const stress_options& options)
      : heap_(heap), options_(options), table_(std::size_t{1} << 18) {}

  /// Runs the workload and calls sample(seconds, live bytes, steps) ten times a second and at the
  /// end.
  template <class Sample>
  void run(Sample sample) {
    std::vector<std::thread> all;
    for (unsigned t = 0; t < options_.threads; ++t) all.emplace_back([this, t] { work(t); });
    const stopwatch watch;
    double now = 0;
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      now = watch.ns() / 1e9;
      sample(now, live_.load(), steps_.load());
    } while (now < options_.seconds && steps_ < options_.steps);
    stop_ = true;
    for (std::thread& t : all) t.join();
    for (entry& p : table_) clear(p);
  }

 private:
  using entry = std::atomic<std::size_t*>;
  static constexpr double smallest = 16, octaves = 12;  // up to 64 KiB
  static constexpr unsigned steps_at_once = 256;        // between two looks at the time
  static constexpr std::uint64_t steps_of_octave = 1u << 19, steps_of_thread = 2000;

  void work(unsigned number) {
    const bool one_sided = options_.kind == stress_kind::pipeline;
    quick_random random(number + 1);
    if (options_.kind != stress_kind::threads) {
      while (!stop_) steps(random, !one_sided || number % 2 == 1, !one_sided || number % 2 == 0);
      return;
    }
    while (!stop_)
      std::thread([&] {
        for (std::uint64_t i = 0; i < steps_of_thread / steps_at_once; ++i)
          steps(random, true, true);
      }).join();
  }

  void steps(quick_random& random, bool clears, bool fills) {
    for (unsigned i = 0; i < steps_at_once; ++i) {
      entry& p = table_[random.below(table_.size())];
      if (clears) clear(p);
      if (fills && live_.load(std::memory_order_relaxed) < target()) fill(p, random);
    }
    steps_.fetch_add(steps_at_once, std::memory_order_relaxed);
  }

  std::uint64_t target() const {
    if (options_.kind != stress_kind::burst) return options_.live;
    return (steps_.load(std::memory_order_relaxed) / (4 * steps_of_octave)) % 2 == 0
               ? options_.live
               : options_.live / 10;
  }

  std::size_t size(quick_random& random) const {
    const double x = static_cast<double>(random.below(1u << 20)) / (1u << 20);
    if (options_.kind == stress_kind::uniform)
      return static_cast<std::size_t>(smallest + x * smallest * (1u << 12));
    if (options_.kind != stress_kind::shift)
      return static_cast<std::size_t>(smallest * std::exp2(x * octaves));
    const std::uint64_t phase = steps_.load(std::memory_order_relaxed) / steps_of_octave;
    return static_cast<std::size_t>(smallest * std::exp2(static_cast<double>(phase * 5 % 12) + x));
  }

  /// An object holds its size in its first word.
  void fill(entry& p, quick_random& random) {
    const std::size_t n = size(random);
    auto* fresh = static_cast<std::size_t*>(heap_.allocate(n));
    if (fresh == nullptr) std::abort();
    std::memset(fresh, 1, n);
    *fresh = n;
    live_.fetch_add(n, std::memory_order_relaxed);
    free(p.exchange(fresh));
  }
  void clear(entry& p) {
    if (p.load(std::memory_order_relaxed) != nullptr) free(p.exchange(nullptr));
  }
  void free(std::size_t* object) {
    if (object == nullptr) return;
    live_.fetch_sub(*object, std::memory_order_relaxed);
    heap_.deallocate(object);
  }

  Heap& heap_;
  stress_options options_;
  std::vector<entry> table_;
  std::atomic<std::uint64_t> live_{0};
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace quarry::tool
