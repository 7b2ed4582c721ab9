// SPDX-License-Identifier: Apache-2.0
/// The default heap in use for a long time: does it stay sound, and does it stay as small as it was?
///
/// Each lane has a slot. In every round some free their block, after a look whether it is still what they wrote, and take
/// another one. Sizes drift to and fro between 16 B and 1 KiB, one in 4,096 is 64 KiB and one in 65,536 is 1 MiB; one slot in
/// eight keeps its block eight times as long as the others. A line now and then, always when sizes are at their largest, says
/// how much is live, how much of the pool nobody else could have for that, how far up it lies, and what went wrong
/// so far. At the end all is looked at and freed.

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
  std::uint64_t slots = 0;  // as many as fill a third of the heap, when sizes are at their largest
};

struct held {
  void* block;
  std::uint32_t size;
  std::uint32_t since;  // a round
};

struct soak_round {
  static constexpr std::uint32_t last = ~std::uint32_t{0};  // all is freed
  static constexpr std::uint32_t drift = 256;               // rounds to the largest sizes and back

  heap_type::ref_type heap;
  std::uint64_t slots;
  std::uint32_t round;
  held* table;
  bench_judge judge;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t i = simt::global_thread();
    if (i >= slots) return;
    held mine = table[i];
    simt::lane_random dice(i | std::uint64_t{round} << 32);
    if (round != last && mine.block != nullptr && dice.below(i % 8 == 0 ? 64 : 8) != 0) return;
    if (mine.block != nullptr) {
      if (!content(i, mine).intact(0, parts(mine.size))) judge.count_corrupt();
      heap.free(mine.block);
      mine.block = nullptr;
    }
    if (round != last) {
      mine.size = draw(dice);
      mine.since = round;
      mine.block = heap.malloc(mine.size);
      if (judge.accept(mine.block, mine.size)) content(i, mine).write(0, parts(mine.size));
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
  QUARRY_DEVICE static bench_block content(std::uint64_t i, const held& mine) {
    return {mine.block, i | std::uint64_t{mine.since} << 32, mine.size};
  }
  /// Of a large block, one word in 64 is written: it is one lane that does it.
  QUARRY_DEVICE static std::uint32_t parts(std::uint32_t size) { return size > 4096 ? 64 : 1; }
};

class soak {
  static constexpr double lines = 12;  // that are printed, about

 public:
  explicit soak(const settings& s)
      : settings_(s),
        heap_(bytes(s.heap)),
        slots_(s.slots != 0 ? s.slots : s.heap / 3 / 520),
        table_(slots_),
        counts_(bench_judge::kinds) {}

  /// Returns an exit code.
  int go() {
    std::printf("%llu slots in a heap of %.0f MiB, %llu s\n",
                static_cast<unsigned long long>(slots_), mib(settings_.heap),
                static_cast<unsigned long long>(settings_.seconds));
    std::printf("%8s %8s %10s %10s %12s %10s %10s\n", "s", "round", "live MiB", "taken MiB",
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
      next += end / lines;
    }
    step(soak_round::last);
    return judge();
  }

 private:
  static double mib(std::uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(1 << 20);
  }
  void step(std::uint32_t round) {
    launch<backend>(bench_team{slots_, 32}.launch_grid(),
                    soak_round{heap_.ref(), slots_, round, table_.data(),
                               bench_judge{0, ~std::uintptr_t{0}, counts_.data()}});
  }
  std::uint64_t count(bench_judge::count kind) const { return counts_.to_host()[kind]; }
  std::uint64_t damaged() const {
    return count(bench_judge::corrupt) + count(bench_judge::misaligned);
  }
  void print(double seconds, std::uint32_t round) const {
    const heap_statistics s = heap_.statistics();
    const std::uint64_t free = s.piece_bytes[static_cast<unsigned>(piece_kind::free)];
    std::printf("%8.1f %8u %10.1f %10.1f %12.1f %10llu %10llu\n", seconds, round,
                mib(s.live_bytes.value()), mib(s.pool_bytes - free),
                mib(s.address_range_bytes.value()),
                static_cast<unsigned long long>(count(bench_judge::failures)),
                static_cast<unsigned long long>(damaged()));
    std::fflush(stdout);
  }
  int judge() const {
    const std::string wrong = heap_.check_invariants();
    if (!wrong.empty()) std::printf("the heap is damaged: %s\n", wrong.c_str());
    const std::uint64_t left = heap_.statistics().live_blocks.value();
    if (left != 0)
      std::printf("%llu blocks are live after all were freed\n",
                  static_cast<unsigned long long>(left));
    if (damaged() != 0) std::printf("blocks were damaged\n");
    const bool sound = wrong.empty() && left == 0 && damaged() == 0;
    if (sound) std::printf("sound\n");
    return sound ? 0 : 1;
  }

  settings settings_;
  heap_type heap_;
  std::uint64_t slots_;
  simt::array<held, backend> table_;
  simt::array<std::uint64_t, backend> counts_;
};

constexpr std::string_view usage =
    "usage: soak [--seconds N] [--heap SIZE] [--slots N]\n"
    "\n"
    "The default heap in use for a long time: blocks come and go, and each is looked at before it\n"
    "is freed. Prints now and then, always when sizes are at their largest, how much is live and\n"
    "how much of the heap is taken for that, which should not grow.\n"
    "\n"
    "  --seconds N   how long, and then until sizes are at their largest again\n"
    "  --heap SIZE   such as 2G\n"
    "  --slots N     blocks that are live at a time (default: so many that they would fill a "
    "third\n"
    "                of the heap with the largest sizes)\n";

settings parse(int count, char** words) {
  settings s;
  read_options(count, words,
               {count_option("--seconds", s.seconds, 1, 1'000'000), size_option("--heap", s.heap),
                count_option("--slots", s.slots, 1, 1 << 28)});
  return s;
}

}  // namespace
}  // namespace quarry::tool

int main(int count, char** words) {
  using namespace quarry::tool;
  return bench_main("soak", usage, count, words, [&] { return soak(parse(count, words)).go(); });
}
