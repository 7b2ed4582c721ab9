// SPDX-License-Identifier: Apache-2.0
/// A warp arena as scratch memory: Listing 1 of Widmer et al. 2013 (FDGMalloc).
///
/// Lanes compute the medians of rows of different lengths. Each lane sorts a copy of its row.
/// Copies are not freed one by one: tidy_up() frees all blocks of the arena after each row, and
/// end() frees the arena.
#include <quarry/heap.hpp>
#include <quarry/layer/warp_arena.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace quarry::literals;
namespace simt = quarry::simt;
using scratch = quarry::warp_arena<quarry::cfmalloc>;

int main() {
  constexpr std::uint32_t blocks = 4, threads = 128, rounds = 5, rows = blocks * threads * rounds;
  const quarry::heap<scratch> heap(32_MiB);
  const auto memory = heap.ref();

  // Row r has the values [start[r], start[r + 1]).
  simt::lane_random draw(2013);
  std::vector<std::uint32_t> starts(1), values;
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t n = 1 + draw.below(60); n != 0; --n) values.push_back(draw.below(1000));
    starts.push_back(static_cast<std::uint32_t>(values.size()));
  }
  simt::array<std::uint32_t, quarry::default_backend> starts_array(starts.size());
  simt::array<std::uint32_t, quarry::default_backend> values_array(values.size());
  simt::array<std::uint32_t, quarry::default_backend> medians_array(rows);
  starts_array.from_host(starts);
  values_array.from_host(values);
  const std::uint32_t* const start = starts_array.data();
  const std::uint32_t* const value = values_array.data();
  std::uint32_t* const median = medians_array.data();

  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    auto warp = memory.allocator().start();  // the active lanes of the warp share an arena
    for (std::uint64_t r = simt::global_thread(); r < rows; r += simt::grid_threads()) {
      const std::uint32_t n = start[r + 1] - start[r];
      auto* const sorted = static_cast<std::uint32_t*>(warp.alloc(n * sizeof(std::uint32_t)));
      median[r] = ~0u;
      if (sorted != nullptr) {
        for (std::uint32_t i = 0; i < n; ++i) {  // insertion sort
          const std::uint32_t v = value[start[r] + i];
          std::uint32_t at = i;
          for (; at != 0 && sorted[at - 1] > v; --at) sorted[at] = sorted[at - 1];
          sorted[at] = v;
        }
        median[r] = sorted[n / 2];
      }
      warp.tidy_up();  // frees the copies of this row
    }
    warp.end();
  });

  const auto found = medians_array.to_host();
  std::uint32_t wrong = 0;
  for (std::uint32_t r = 0; r < rows; ++r) {
    const auto first = values.begin() + starts[r];
    const auto last = values.begin() + starts[r + 1];
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last);
    wrong += found[r] != *middle;
  }
  const auto s = heap.statistics();
  const auto open = quarry::arenas_open(s);
  const auto live = s.live_blocks.value_or(0);
  std::printf("%u of %u medians wrong; %llu arenas open, %llu blocks live\n", wrong, rows,
              static_cast<unsigned long long>(open), static_cast<unsigned long long>(live));
  return wrong == 0 && open == 0 && live == 0 ? 0 : 1;
}
