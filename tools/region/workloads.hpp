// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Workloads that compare allocators on the CPU. A Heap has allocate(n) and deallocate(p).
///
///   steady   a table of live objects; each step frees a random one and allocates another
///   grow     192 B, 60 % allocations up to a number of live objects, then 40 %: resident memory
///   larson   threads replace objects in each other's tables (Larson and Krishnan 1998)
///   pass     half of the threads allocate, half free (xmalloc-test)
///   scratch  threads free an object of another thread, then write to their own (cache-scratch)

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <atomic>

namespace quarry::tool {

/// An xorshift generator: cheap compared with the calls that are measured.
class quick_random {
 public:
  explicit quick_random(std::uint64_t seed) : x_(seed * 0x9e3779b97f4a7c15ull | 1) {}
  std::uint64_t next() {
    x_ ^= x_ << 13;
    x_ ^= x_ >> 7;
    x_ ^= x_ << 17;
    return x_;
  }
  std::uint64_t below(std::uint64_t n) { return (next() >> 32) * n >> 32; }

 private:
  std::uint64_t x_;
};

inline constexpr std::size_t paper_sizes[] = {64, 192, 1024, 1536, 4096, 50048};

class stopwatch {
 public:
  double ns() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Returns the resident set size of this process.
inline std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * 4096;
}

/// Returns ns per allocate or deallocate, the minimum of five parts of the run.
template <class Heap>
double steady(Heap& heap, std::size_t live, bool six, std::uint64_t operations) {
  quick_random random(1);
  const auto size = [&] { return six ? paper_sizes[random.below(6)] : 192; };
  std::vector<void*> table(live);
  for (void*& p : table) p = heap.allocate(size());
  const std::uint64_t pairs = operations / 5;
  double best = 1e18;
  for (int part = 0; part < 5; ++part) {
    const stopwatch watch;
    for (std::uint64_t i = 0; i < pairs; ++i) {
      void*& p = table[random.below(live)];
      heap.deallocate(p);
      p = heap.allocate(size());
    }
    best = std::min(best, watch.ns() / static_cast<double>(pairs) / 2);
  }
  for (void* p : table) heap.deallocate(p);
  return best;
}

struct footprint {
  double peak;        // resident / live bytes at the largest number of live objects
  double after_free;  // the same after a third of the objects is freed
};

template <class Heap>
footprint grow(Heap& heap, std::size_t live) {
  quick_random random(2);
  std::vector<void*> table;
  table.reserve(live);
  table.resize(live);  // commits the memory of the table before the first measurement
  table.clear();
  const std::uint64_t before = resident_bytes();
  const auto ratio = [&] {
    return static_cast<double>(resident_bytes() - before) / static_cast<double>(table.size() * 192);
  };
  const auto step = [&](unsigned percent) {
    if (random.below(100) < percent || table.empty()) {
      table.push_back(heap.allocate(192));
      std::memset(table.back(), 1, 192);
    } else {
      std::swap(table[random.below(table.size())], table.back());
      heap.deallocate(table.back());
      table.pop_back();
    }
  };
  while (table.size() < live) step(60);
  footprint f{};
  f.peak = ratio();
  while (table.size() > live / 3 * 2) step(40);
  f.after_free = ratio();
  for (void* p : table) heap.deallocate(p);
  return f;
}

/// Returns ns per allocate or deallocate of one thread: wall time / operations / threads / 2.
template <class Heap, class Body>
double threaded(unsigned threads, std::uint64_t operations, Body body) {
  std::vector<std::thread> all;
  const stopwatch watch;
  for (unsigned t = 0; t < threads; ++t) all.emplace_back([&, t] { body(t); });
  for (std::thread& t : all) t.join();
  return watch.ns() / static_cast<double>(operations) / threads / 2;
}

template <class Heap>
double larson(Heap& heap, unsigned threads, std::uint64_t operations) {
  constexpr std::size_t slots = 1000;
  std::vector<std::atomic<void*>> table(slots * threads);
  for (auto& p : table) p = heap.allocate(64);
  const double ns = threaded<Heap>(threads, operations, [&](unsigned t) {
    quick_random random(t + 1);
    for (std::uint64_t i = 0; i < operations; ++i) {
      void* fresh = heap.allocate(8 + random.below(1000));
      heap.deallocate(table[random.below(table.size())].exchange(fresh));
    }
  });
  for (auto& p : table) heap.deallocate(p);
  return ns;
}

template <class Heap>
double pass(Heap& heap, unsigned threads, std::uint64_t operations) {
  constexpr std::size_t slots = 4096;
  std::vector<std::vector<std::atomic<void*>>> rings;
  for (unsigned i = 0; i < threads / 2; ++i) rings.emplace_back(slots);
  return threaded<Heap>(threads / 2 * 2, operations / 2, [&](unsigned t) {
    auto& ring = rings[t / 2];
    quick_random random(t + 1);
    for (std::uint64_t i = 0; i < operations; ++i) {
      auto& place = ring[i % slots];
      if (t % 2 == 0) {
        void* p = heap.allocate(8 + random.below(500));
        while (place.load(std::memory_order_relaxed) != nullptr) std::this_thread::yield();
        place.store(p, std::memory_order_release);
      } else {
        void* p = nullptr;
        while ((p = place.load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
        place.store(nullptr, std::memory_order_release);
        heap.deallocate(p);
      }
    }
  });
}

template <class Heap>
double scratch(Heap& heap, unsigned threads, std::uint64_t operations) {
  std::vector<void*> given;
  for (unsigned t = 0; t < threads; ++t) given.push_back(heap.allocate(64));
  return threaded<Heap>(threads, operations, [&](unsigned t) {
    heap.deallocate(given[t]);
    for (std::uint64_t i = 0; i < operations; ++i) {
      auto* p = static_cast<volatile char*>(heap.allocate(64));
      for (int j = 0; j < 64; ++j) p[j] = static_cast<char>(p[j] + 1);
      heap.deallocate(const_cast<char*>(p));
    }
  });
}

}  // namespace quarry::tool
