// SPDX-License-Identifier: Apache-2.0
/// A heap that grows between kernels: the program need not know how much memory it will take.
///
/// The program builds a random tree, one kernel per level. If allocations of a kernel failed, the
/// heap grows and the program repeats the level. At the end the program frees the tree and returns
/// the memory to the system.
#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>
#include <utility>

using namespace quarry::literals;
namespace simt = quarry::simt;
using allocator = quarry::slab;

struct node {
  node* parent;
  std::uint64_t payload[15];
};

int main() {
  quarry::heap<allocator> heap(2_MiB, {.max = 1_GiB});
  const auto memory = heap.ref();  // stays valid while the heap grows

  constexpr std::uint32_t max_width = 1 << 17;
  simt::array<node*, quarry::default_backend> level(max_width), next(max_width);
  // [0]: nodes of the next level, [1]: lanes whose allocation failed.
  simt::array<std::uint32_t, quarry::default_backend> counters(2);
  std::uint32_t width = 1;
  std::uint64_t nodes = 0;
  for (std::uint32_t depth = 0; depth < 17; ++depth) {
    for (bool repeat = true; repeat;) {
      counters.fill_zero();
      node** const from = level.data();
      node** const to = next.data();
      std::uint32_t* const counts = counters.data();
      // Lane i adds one to three children to node i, or none if an allocation fails.
      quarry::launch({(width + 127) / 128, 128}, [=] QUARRY_DEVICE {
        const std::uint64_t me = simt::global_thread();
        if (me >= width) return;
        const std::uint32_t children =
            1 + simt::scramble(static_cast<std::uint32_t>(me * 31 + depth)) % 3;
        node* made[3];
        for (std::uint32_t i = 0; i < children; ++i) {
          made[i] = static_cast<node*>(memory.malloc(sizeof(node)));
          if (made[i] != nullptr) continue;
          while (i != 0) memory.free(made[--i]);
          simt::atomic_ref(counts[1]).add(1, simt::relaxed);
          return;
        }
        const std::uint32_t place = simt::atomic_ref(counts[0]).fetch_add(children, simt::relaxed);
        for (std::uint32_t i = 0; i < children; ++i) {
          made[i]->parent = from[me];
          if (place + i < max_width) to[place + i] = made[i];
        }
      });
      const auto counted = counters.to_host();
      repeat = counted[1] != 0;
      if (repeat) {  // free this level, grow, and repeat
        const std::uint32_t made = counted[0];
        quarry::launch({made / 128 + 1, 128}, [=] QUARRY_DEVICE {
          if (simt::global_thread() < made) memory.free(to[simt::global_thread()]);
        });
        if (!heap.adapt()) return 1;
        std::printf("level %u: %u allocations failed; the heap grows to %s\n", depth, counted[1],
                    quarry::to_text(heap.pool_bytes()).c_str());
      } else {
        width = counted[0] < max_width ? counted[0] : max_width;
        nodes += counted[0];
      }
    }
    std::swap(level, next);
  }
  const auto s = heap.statistics();
  const std::uint64_t grown = heap.pool_bytes();
  std::printf("%llu nodes, %llu blocks live, heap of %s\n", static_cast<unsigned long long>(nodes),
              static_cast<unsigned long long>(s.live_blocks.value_or(0)),
              quarry::to_text(grown).c_str());
  const bool correct = s.live_blocks == nodes;

  heap.reset();  // frees all blocks at once
  heap.trim();
  std::printf("after reset and trim: heap of %s\n", quarry::to_text(heap.pool_bytes()).c_str());
  return correct && grown > 2 << 20 && heap.pool_bytes() < grown ? 0 : 1;
}
