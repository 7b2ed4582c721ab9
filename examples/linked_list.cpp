// SPDX-License-Identifier: Apache-2.0
/// A linked list that grows inside a kernel: every lane adds a different number of nodes.
///
/// The same source runs on the CPU (compiled by g++) and on the GPU (compiled by nvcc).
#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>

using namespace quarry::literals;
namespace simt = quarry::simt;

struct node {
  node* next;
  std::uint64_t value;
};

/// Pushes a node onto the list. `release` makes the contents of the node visible to a lane that
/// loads the head with `acquire`.
QUARRY_DEVICE void push(std::uint64_t* head, node* n) {
  std::uint64_t first = simt::atomic_ref(*head).load(simt::relaxed);
  do n->next = reinterpret_cast<node*>(first);
  while (!simt::atomic_ref(*head).compare_exchange(first, reinterpret_cast<std::uint64_t>(n),
                                                   simt::release));
}

int main() {
  constexpr std::uint32_t blocks = 16, threads = 128, lanes = blocks * threads;
  const quarry::heap<> heap(8_MiB);
  const auto memory = heap.ref();  // kernels allocate through it
  simt::array<std::uint64_t, quarry::default_backend> state(3);
  std::uint64_t* const head = state.data();
  std::uint64_t* const sum = state.data() + 1;
  std::uint64_t* const failures = state.data() + 2;

  // Lane i adds i % 8 nodes with the value i.
  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    const std::uint64_t me = simt::global_thread();
    for (std::uint64_t i = 0; i < me % 8; ++i) {
      node* const n = memory.create<node>();
      if (n == nullptr) {  // the allocation failed: the heap is full
        simt::atomic_ref(*failures).add(1, simt::relaxed);
        return;
      }
      n->value = me;
      push(head, n);
    }
  });

  // One lane traverses the list, sums up the values, and frees the nodes.
  quarry::launch({1, 1}, [=] QUARRY_DEVICE {
    for (auto* n = reinterpret_cast<node*>(*head); n != nullptr;) {
      node* const next = n->next;
      *sum += n->value;
      memory.destroy(n);
      n = next;
    }
  });

  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < lanes; ++i) expected += i % 8 * i;
  const auto result = state.to_host();
  const std::uint64_t live = heap.statistics().live_blocks.value_or(0);
  std::printf("sum %llu, expected %llu; %llu allocations failed, %llu blocks live\n",
              static_cast<unsigned long long>(result[1]), static_cast<unsigned long long>(expected),
              static_cast<unsigned long long>(result[2]), static_cast<unsigned long long>(live));
  return result[1] == expected && result[2] == 0 && live == 0 ? 0 : 1;
}
