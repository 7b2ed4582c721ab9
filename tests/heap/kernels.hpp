// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels for heap tests: one lane allocates blocks, all lanes write and check them. Each word of
/// a block holds the index of the block.

#include <quarry/heap.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry::testing {

using here = default_backend;

/// One lane allocates up to `most` blocks of one size. nullptr ends the list.
template <class Ref>
struct allocate_blocks {
  Ref heap;
  std::uint64_t size;
  std::uint64_t most;
  std::uint64_t** blocks;
  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = 0; i < most; ++i)
      if ((blocks[i] = static_cast<std::uint64_t*>(heap.malloc(size))) == nullptr) return;
  }
};
struct write_indices {
  std::uint64_t* const* blocks;
  std::uint64_t size;
  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = 0; blocks[i] != nullptr; ++i)
      for (std::uint64_t w = simt::global_thread(); w < size / 8; w += simt::grid_threads())
        blocks[i][w] = i;
  }
};
struct count_wrong_words {
  std::uint64_t* const* blocks;
  std::uint64_t size;
  std::uint64_t* wrong;
  QUARRY_DEVICE void operator()() const {
    std::uint64_t mine = 0;
    for (std::uint64_t i = 0; blocks[i] != nullptr; ++i)
      for (std::uint64_t w = simt::global_thread(); w < size / 8; w += simt::grid_threads())
        mine += blocks[i][w] != i;
    if (mine != 0) simt::atomic_ref<std::uint64_t>(*wrong).add(mine, simt::relaxed);
  }
};

/// Allocates up to `most` blocks of one size, writes them, and returns them.
template <class Heap>
std::vector<std::uint64_t*> fill(const Heap& heap, std::uint64_t size, std::uint64_t most = 4096) {
  simt::array<std::uint64_t*, here> blocks(most + 1);
  launch<here>({1, 1},
               allocate_blocks<typename Heap::ref_type>{heap.ref(), size, most, blocks.data()});
  launch<here>({2, 128}, write_indices{blocks.data(), size});
  std::vector<std::uint64_t*> allocated = blocks.to_host();
  while (!allocated.empty() && allocated.back() == nullptr) allocated.pop_back();
  return allocated;
}
/// Returns the number of words that do not hold the index of their block.
inline std::uint64_t wrong_words(const std::vector<std::uint64_t*>& blocks, std::uint64_t size) {
  simt::array<std::uint64_t*, here> on_device(blocks.size() + 1);
  std::vector<std::uint64_t*> terminated = blocks;
  terminated.push_back(nullptr);
  on_device.from_host(terminated);
  simt::array<std::uint64_t, here> wrong(1);
  launch<here>({2, 128}, count_wrong_words{on_device.data(), size, wrong.data()});
  return wrong.to_host()[0];
}

}  // namespace quarry::testing
