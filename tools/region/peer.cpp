// SPDX-License-Identifier: Apache-2.0
/// region_peer malloc|regions WORKLOAD [OPERATIONS]: runs one workload on one allocator in a
/// process of its own and prints the results in one line. With LD_PRELOAD, malloc is that of
/// another library. `quarry region peers` starts this program for each allocator, so that all run
/// the same code.
///
/// region_peer malloc|regions stress NAME SECONDS THREADS MIB [STEPS]: runs a workload of
/// stress.hpp and prints the time, live bytes, resident bytes and steps ten times a second.

#include "region/stress.hpp"
#include "region/workloads.hpp"

#include <quarry/region.hpp>
#include <quarry/region/heap.hpp>

#include <cstdlib>
#include <string_view>

namespace {

using namespace quarry;
using namespace quarry::tool;

struct system_malloc {
  static void* allocate(std::size_t n) { return std::malloc(n); }
  static void deallocate(void* p) { std::free(p); }
};

/// A region that one thread uses.
struct lone_region {
  region_tree tree;
  region it{tree};
  void* allocate(std::size_t n) { return it.allocate(n); }
  void deallocate(void* p) { it.deallocate(p); }
};

constexpr std::uint64_t million = 1'000'000;

template <class Heap>
int one_thread(Heap& heap, std::string_view what, std::uint64_t operations) {
  if (what == "192-20k") return std::printf("%.3f\n", steady(heap, 20'000, false, operations)), 0;
  if (what == "192-1m") return std::printf("%.3f\n", steady(heap, million, false, operations)), 0;
  if (what == "six-20k") return std::printf("%.3f\n", steady(heap, 20'000, true, operations)), 0;
  if (what == "grow") {
    const footprint f = grow(heap, million);
    std::printf("%.4f %.4f\n", f.peak, f.after_free);
    return 0;
  }
  if (what == "free-all") {
    std::vector<void*> all(million);
    for (void*& p : all) p = heap.allocate(192);
    quick_random random(3);
    for (std::size_t i = all.size() - 1; i > 0; --i) std::swap(all[i], all[random.below(i + 1)]);
    const stopwatch watch;
    for (void* p : all) heap.deallocate(p);
    std::printf("%.0f\n", watch.ns());
    return 0;
  }
  return 2;
}

template <class Heap>
int many_threads(Heap& heap, std::string_view what, std::uint64_t operations) {
  const unsigned threads = std::max(2u, std::thread::hardware_concurrency());
  if (what == "larson") return std::printf("%.3f\n", larson(heap, threads, operations)), 0;
  if (what == "pass") return std::printf("%.3f\n", pass(heap, threads, operations)), 0;
  if (what == "scratch") return std::printf("%.3f\n", scratch(heap, threads, operations)), 0;
  return 2;
}

template <class Heap>
int print_stress(Heap& heap, int argc, char** argv) {
  const auto kind = argc > 6 ? stress_kind_of(argv[3]) : std::nullopt;
  if (!kind) return 2;
  stress_options o;
  o.kind = *kind;
  o.seconds = std::atof(argv[4]);
  o.threads = static_cast<unsigned>(std::atoi(argv[5]));
  o.live = std::strtoull(argv[6], nullptr, 10) << 20;
  if (argc > 7) o.steps = std::strtoull(argv[7], nullptr, 10);
  stress it(heap, o);
  it.run([](double seconds, std::uint64_t live, std::uint64_t steps) {
    std::printf("%.1f %llu %llu %llu\n", seconds, static_cast<unsigned long long>(live),
                static_cast<unsigned long long>(resident_bytes()),
                static_cast<unsigned long long>(steps));
  });
  return 0;
}

/// Prints the time to destroy a region of a million objects.
int time_destroy_region() {
  region_tree tree;
  region r(tree);
  std::vector<void*> all(million);
  tree.allocate_bulk(r.id(), 192, all);
  const stopwatch watch;
  tree.destroy_region(r.release());
  std::printf("%.0f\n", watch.ns());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: region_peer malloc|regions WORKLOAD [OPERATIONS]\n");
    return 2;
  }
  const std::string_view who = argv[1], what = argv[2];
  const std::uint64_t operations = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 5 * million;
  if (what == "stress") {
    system_malloc system;
    if (who == "malloc") return print_stress(system, argc, argv);
    region_heap<> heap;
    return print_stress(heap, argc, argv);
  }
  const bool shared = what == "larson" || what == "pass" || what == "scratch";
  if (who == "malloc") {
    system_malloc heap;
    return shared ? many_threads(heap, what, operations) : one_thread(heap, what, operations);
  }
  if (what == "free-region") return time_destroy_region();
  if (shared) {
    region_heap<> heap;
    return many_threads(heap, what, operations);
  }
  if (what == "192-1m-shared") {  // the cost of the lock
    region_heap<> heap;
    return one_thread(heap, "192-1m", operations);
  }
  lone_region heap;
  return one_thread(heap, what, operations);
}
