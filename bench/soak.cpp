// SPDX-License-Identifier: Apache-2.0
/// Soak test of the default heap: does the heap stay sound in long use, and does its memory use
/// stay constant?
///
/// Each lane owns an entry of a table. In every round some lanes check the content of their block,
/// free the block and allocate another one. Sizes drift up and down between 16 B and 1 KiB; one
/// request in 4,096 is for 64 KiB, one in 65,536 for 1 MiB. One lane in eight keeps its block eight
/// times as long as the others. When sizes are at their maximum, the program prints live bytes,
/// used bytes, the address range of the live blocks, failed allocations and damaged blocks. At the
/// end all blocks are checked and freed.

#include "bench/kernels/run.hpp"
#include "bench_main.hpp"

#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace quarry::tool {
namespace {

using backend = default_backend;
using heap_type = heap<slab, backend>;
constexpr bool gpu = QUARRY_CUDA != 0;

struct settings {
  std::uint64_t seconds = gpu ? 180 : 2;
  std::uint64_t heap = gpu ? std::uint64_t{2} << 30 : std::uint64_t{32} << 20;
  std::uint64_t lanes =
      0;  // 0: live blocks fill a third of the heap when sizes are at their maximum
};

struct held_block {
  void* block;
  std::uint32_t size;
  std::uint32_t round;  // of the malloc
};

struct soak_round {
  static constexpr std::uint32_t last = ~std::uint32_t{0};  // the launch that frees all blocks
  static constexpr std::uint32_t drift = 256;  // rounds until sizes are at their minimum again

  heap_type::ref_type heap;
  std::uint64_t lanes;
  std::uint32_t round;
  held_block* table;
  bench_checker checker;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t i = simt::global_thread();
    if (i >= lanes) return;
    held_block mine = table[i];
    simt::lane_random dice(i | std::uint64_t{round} << 32);
    if (round != last && mine.block != nullptr && dice.below(i % 8 == 0 ? 64 : 8) != 0) return;
    if (mine.block != nullptr) {
      if (!content(i, mine).intact(0, parts(mine.size))) checker.count_corrupt();
      heap.free(mine.block);
      mine.block = nullptr;
    }
    if (round != last) {
      mine.size = draw(dice);
      mine.round = round;
      mine.block = heap.malloc(mine.size);
      if (checker.accept(mine.block, mine.size)) content(i, mine).write(0, parts(mine.size));
    }
    table[i] = mine;
  }

 private:
  QUARRY_DEVICE std::uint32_t draw(simt::lane_random& dice) const {
    if (dice.below(65536) == 0) return 1u << 20;
    if (dice.below(4096) == 0) return 64u << 10;
    const std::uint32_t phase = round % drift;
    const std::uint32_t most = 64 + 960 * (phase < drift / 2 ? phase : drift - phase) / (drift / 2);
    return 16 + dice.below(most - 15);
  }
  QUARRY_DEVICE static bench_block content(std::uint64_t i, const held_block& mine) {
    return {mine.block, i | std::uint64_t{mine.round} << 32, mine.size};
  }
  /// Returns n such that one word in n is written. One lane writes a whole block, so that large
  /// blocks are only sampled.
  QUARRY_DEVICE static std::uint32_t parts(std::uint32_t size) { return size > 4096 ? 64 : 1; }
};

class soak {
  static constexpr double printed_lines = 12;  // approximate number

 public:
  explicit soak(const settings& s)
      : settings_(s),
        heap_(bytes(s.heap)),
        lanes_(s.lanes != 0 ? s.lanes : s.heap / 3 / 520),
        table_(lanes_),
        counts_(bench_checker::kinds) {}

  /// Returns an exit code.
  int run() {
    std::printf("%llu lanes, heap of %.0f MiB, %llu s\n", static_cast<unsigned long long>(lanes_),
                mib(settings_.heap), static_cast<unsigned long long>(settings_.seconds));
    std::printf("%8s %8s %10s %10s %12s %10s %10s\n", "s", "round", "live MiB", "used MiB",
                "range MiB", "failed", "damaged");
    const auto end = static_cast<double>(settings_.seconds);
    const bench_timer timer;
    double next = 0;
    for (std::uint32_t round = 0;; ++round) {
      step(round);
      const double now = timer.seconds();
      if (round % soak_round::drift != soak_round::drift / 2 || now < next) continue;
      print(now, round);
      if (now >= end) break;
      next += end / printed_lines;
    }
    step(soak_round::last);
    return check();
  }

 private:
  static double mib(std::uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(1 << 20);
  }
  void step(std::uint32_t round) {
    launch<backend>(bench_lanes{lanes_, 32}.launch_grid(),
                    soak_round{heap_.ref(), lanes_, round, table_.data(),
                               bench_checker{0, ~std::uintptr_t{0}, counts_.data()}});
  }
  std::uint64_t count(bench_checker::count kind) const { return counts_.to_host()[kind]; }
  std::uint64_t damaged() const {
    return count(bench_checker::corrupt) + count(bench_checker::misaligned);
  }
  void print(double seconds, std::uint32_t round) const {
    const heap_statistics s = heap_.statistics();
    const std::uint64_t free = s.piece_bytes[static_cast<unsigned>(piece_kind::free)];
    std::printf("%8.1f %8u %10.1f %10.1f %12.1f %10llu %10llu\n", seconds, round,
                mib(s.live_bytes.value()), mib(s.pool_bytes - free),
                mib(s.address_range_bytes.value()),
                static_cast<unsigned long long>(count(bench_checker::failures)),
                static_cast<unsigned long long>(damaged()));
    std::fflush(stdout);
  }
  int check() const {
    const std::string problem = heap_.check_invariants();
    if (!problem.empty()) std::printf("invariants of the heap do not hold: %s\n", problem.c_str());
    const std::uint64_t left = heap_.statistics().live_blocks.value();
    if (left != 0)
      std::printf("%llu blocks are live after all blocks were freed\n",
                  static_cast<unsigned long long>(left));
    if (damaged() != 0) std::printf("blocks were damaged\n");
    const bool sound = problem.empty() && left == 0 && damaged() == 0;
    if (sound) std::printf("sound\n");
    return sound ? 0 : 1;
  }

  settings settings_;
  heap_type heap_;
  std::uint64_t lanes_;
  simt::array<held_block, backend> table_;
  simt::array<std::uint64_t, backend> counts_;
};

constexpr std::string_view usage =
    "usage: soak [--seconds N] [--heap SIZE] [--lanes N]\n"
    "\n"
    "Soak test of the default heap: lanes allocate and free blocks of drifting sizes, and check "
    "each\n"
    "block before they free it. Prints live and used bytes whenever sizes are at their maximum. "
    "The\n"
    "used bytes should not grow.\n"
    "\n"
    "  --seconds N   duration; the test ends at the next maximum of the sizes\n"
    "  --heap SIZE   for example 2G\n"
    "  --lanes N     lanes, one block each (default: live blocks fill a third of the heap when\n"
    "                sizes are at their maximum)\n";

settings parse(int count, char** words) {
  settings s;
  read_options(count, words,
               {count_option("--seconds", s.seconds, 1, 1'000'000), size_option("--heap", s.heap),
                count_option("--lanes", s.lanes, 1, 1 << 28)});
  return s;
}

}  // namespace
}  // namespace quarry::tool

int main(int count, char** words) {
  using namespace quarry::tool;
  return bench_main("soak", usage, count, words, [&] { return soak(parse(count, words)).run(); });
}
