// SPDX-License-Identifier: Apache-2.0
/// A heap that grows between kernels: nobody has to know beforehand how much memory a computation takes.
///
/// A tree of random shape is built level by level, one kernel a level. When a kernel was short of memory, the heap
/// grows and the level is built anew. In the end everything is freed, and the heap gives back what it took.
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
  const auto memory = heap.ref();  // stays good while the heap grows

  constexpr std::uint32_t most = 1 << 17;
  simt::array<node*, quarry::default_backend> level(most), next(most);
  // Nodes of the next level, lanes that were short of memory.
  simt::array<std::uint32_t, quarry::default_backend> counters(2);
  std::uint32_t width = 1;
  std::uint64_t nodes = 0;
  for (std::uint32_t depth = 0; depth < 17; ++depth) {
    for (bool again = true; again;) {
      counters.fill_zero();
      node** const from = level.data();
      node** const to = next.data();
      std::uint32_t* const counts = counters.data();
      // Lane i gives the i-th node one to three children; it asks for all of them or for none.
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
          if (place + i < most) to[place + i] = made[i];
        }
      });
      const auto counted = counters.to_host();
      again = counted[1] != 0;
      if (again) {  // give this level back, grow, and build it anew
        const std::uint32_t made = counted[0];
        quarry::launch({made / 128 + 1, 128}, [=] QUARRY_DEVICE {
          if (simt::global_thread() < made) memory.free(to[simt::global_thread()]);
        });
        if (!heap.adapt()) return 1;
        std::printf("level %u: %u lanes were short of memory; the heap has %s now\n", depth,
                    counted[1], quarry::to_text(heap.pool_bytes()).c_str());
      } else {
        width = counted[0] < most ? counted[0] : most;
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
  const bool right = s.live_blocks == nodes;

  heap.reset();  // frees everything at once
  heap.trim();
  std::printf("after reset and trim: heap of %s\n", quarry::to_text(heap.pool_bytes()).c_str());
  return right && grown > 2 << 20 && heap.pool_bytes() < grown ? 0 : 1;
}
