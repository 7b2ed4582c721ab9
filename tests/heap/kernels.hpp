// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Blocks that one lane takes and all lanes write and read: each word of a block holds the block's number.

#include <quarry/heap.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry::testing {

using here = default_backend;

/// Blocks of one size, as many as are served, at most `most`; nullptr ends them.
template <class Ref>
struct take_blocks {
  Ref heap;
  std::uint64_t size;
  std::uint64_t most;
  std::uint64_t** blocks;
  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = 0; i < most; ++i)
      if ((blocks[i] = static_cast<std::uint64_t*>(heap.malloc(size))) == nullptr) return;
  }
};
struct write_numbers {
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

template <class Heap>
std::vector<std::uint64_t*> fill(const Heap& heap, std::uint64_t size, std::uint64_t most = 4096) {
  simt::array<std::uint64_t*, here> blocks(most + 1);
  launch<here>({1, 1}, take_blocks<typename Heap::ref_type>{heap.ref(), size, most, blocks.data()});
  launch<here>({2, 128}, write_numbers{blocks.data(), size});
  std::vector<std::uint64_t*> got = blocks.to_host();
  while (!got.empty() && got.back() == nullptr) got.pop_back();
  return got;
}
inline std::uint64_t wrong_words(const std::vector<std::uint64_t*>& blocks, std::uint64_t size) {
  simt::array<std::uint64_t*, here> there(blocks.size() + 1);
  std::vector<std::uint64_t*> ended = blocks;
  ended.push_back(nullptr);
  there.from_host(ended);
  simt::array<std::uint64_t, here> wrong(1);
  launch<here>({2, 128}, count_wrong_words{there.data(), size, wrong.data()});
  return wrong.to_host()[0];
}

}  // namespace quarry::testing
