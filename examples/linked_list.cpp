// SPDX-License-Identifier: Apache-2.0
/// A linked list that grows inside a kernel: every lane adds as many nodes as it likes.
///
/// Compile with g++ and it runs on the CPU, with nvcc and it runs on the GPU; the source is the same.
#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>

using namespace quarry::literals;
namespace simt = quarry::simt;

struct node {
  node* next;
  std::uint64_t value;
};

/// A list's head is one word that lanes exchange. `release`: whoever finds the node finds it complete.
QUARRY_DEVICE void push(std::uint64_t* head, node* n) {
  std::uint64_t first = simt::atomic_ref(*head).load(simt::relaxed);
  do n->next = reinterpret_cast<node*>(first);
  while (!simt::atomic_ref(*head).compare_exchange(first, reinterpret_cast<std::uint64_t>(n),
                                                   simt::release));
}

int main() {
  constexpr std::uint32_t blocks = 16, threads = 128, lanes = blocks * threads;
  const quarry::heap<> heap(8_MiB);
  const auto memory = heap.ref();  // what kernels take
  simt::array<std::uint64_t, quarry::default_backend> state(3);
  std::uint64_t* const head = state.data();
  std::uint64_t* const sum = state.data() + 1;
  std::uint64_t* const refused = state.data() + 2;

  // Lane i adds i % 8 nodes that hold i. Nobody had to know beforehand how many that makes.
  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    const std::uint64_t me = simt::global_thread();
    for (std::uint64_t i = 0; i < me % 8; ++i) {
      auto* const n = static_cast<node*>(memory.malloc(sizeof(node)));
      if (n == nullptr) {  // the heap is full
        simt::atomic_ref(*refused).add(1, simt::relaxed);
        return;
      }
      n->value = me;
      push(head, n);
    }
  });

  // One lane walks the list and frees it on the way.
  quarry::launch({1, 1}, [=] QUARRY_DEVICE {
    for (auto* n = reinterpret_cast<node*>(*head); n != nullptr;) {
      node* const next = n->next;
      *sum += n->value;
      memory.free(n);
      n = next;
    }
  });

  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < lanes; ++i) expected += i % 8 * i;
  const auto result = state.to_host();
  const std::uint64_t live = heap.statistics().live_blocks.value_or(0);
  std::printf("sum %llu, expected %llu; %llu requests refused, %llu blocks left\n",
              static_cast<unsigned long long>(result[1]), static_cast<unsigned long long>(expected),
              static_cast<unsigned long long>(result[2]), static_cast<unsigned long long>(live));
  return result[1] == expected && result[2] == 0 && live == 0 ? 0 : 1;
}
