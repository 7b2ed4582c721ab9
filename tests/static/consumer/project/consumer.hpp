// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A program of two translation units, main and other, which share one heap.

#include <quarry/heap.hpp>

#include <cstdint>

inline constexpr std::uint32_t blocks = 4;
inline constexpr std::uint32_t threads = 64;

/// The work of one lane: allocates a block, fills it, reads it back and frees it. Adds 1 to
/// `served` if the block kept its contents.
QUARRY_DEVICE inline void use(const quarry::heap_ref<>& heap, std::uint32_t* served) {
  constexpr std::uint32_t words = 16;
  const auto mine = static_cast<std::uint32_t>(quarry::simt::global_thread());
  auto* block = static_cast<std::uint32_t*>(heap.malloc(words * sizeof(std::uint32_t)));
  if (block == nullptr) return;
  for (std::uint32_t i = 0; i < words; ++i) block[i] = mine + i;
  bool kept = true;
  for (std::uint32_t i = 0; i < words; ++i) kept = kept && block[i] == mine + i;
  heap.free(block);
  if (kept) quarry::simt::atomic_ref<std::uint32_t>(*served).fetch_add(1, quarry::simt::relaxed);
}

/// Returns: the number of lanes that a kernel of the other translation unit serves.
std::uint32_t served_in_other_unit(const quarry::heap<>& heap);
