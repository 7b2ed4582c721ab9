// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the contract suite. Each lane works on entries of arrays that the host reads later.

#include <quarry/heap.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry::contract {

using simt::global_thread;

/// What a lane asked for and got.
struct request {
  std::uint64_t size;
  std::byte* block;
};

/// The byte that belongs at `index` of the block of request `owner`.
QUARRY_DEVICE inline std::byte pattern(std::uint64_t owner, std::uint64_t index) {
  return static_cast<std::byte>(
      simt::scramble(static_cast<std::uint32_t>(owner * 131 + index / 7)) >> (index % 3 * 8));
}
QUARRY_DEVICE inline void fill(const request& r, std::uint64_t owner) {
  for (std::uint64_t i = 0; i < r.size; ++i) r.block[i] = pattern(owner, i);
}
QUARRY_DEVICE inline bool intact(const request& r, std::uint64_t owner) {
  for (std::uint64_t i = 0; i < r.size; ++i)
    if (r.block[i] != pattern(owner, i)) return false;
  return true;
}

/// Every lane asks for what its entry says and fills the block.
template <class Ref>
struct malloc_and_fill {
  Ref heap;
  request* requests;
  std::uint64_t count;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    if (me >= count) return;
    request& r = requests[me];
    r.block = static_cast<std::byte*>(heap.malloc(r.size));
    if (r.block != nullptr) fill(r, me);
  }
};

/// The same from different places of the program, at different times, with lanes that leave early.
template <class Ref>
struct malloc_diverged {
  Ref heap;
  request* requests;
  std::uint64_t count;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    if (me >= count || me % 7 == 3) return;  // some lanes never ask
    request& r = requests[me];
    if (me % 2 == 0) {
      for (std::uint64_t i = 0; i < me % 5; ++i)
        if (r.block == nullptr)
          r.block = static_cast<std::byte*>(heap.malloc(i == me % 5 - 1 ? r.size : 0));
    } else if (me % 3 == 0) {
      r.block = static_cast<std::byte*>(heap.malloc(r.size));
    }
    if (r.block == nullptr) r.block = static_cast<std::byte*>(heap.malloc(r.size));
    if (r.block != nullptr) fill(r, me);
  }
};

/// Counts the blocks that do not hold what their owner wrote.
struct count_damaged {
  const request* requests;
  std::uint64_t count;
  std::uint32_t* damaged;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    if (me >= count || requests[me].block == nullptr || intact(requests[me], me)) return;
    simt::atomic_ref<std::uint32_t>(*damaged).add(1, simt::relaxed);
  }
};

/// Every lane frees its own block.
template <class Ref>
struct free_own {
  Ref heap;
  request* requests;
  std::uint64_t count;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    if (me < count) heap.free(requests[me].block);
  }
};

/// Every lane frees the block of another one.
template <class Ref>
struct free_of_another {
  Ref heap;
  request* requests;
  std::uint64_t count;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    if (me >= count) return;
    request& r = requests[(me * 7919 + 13) % count];  // a bijection: count is a power of two
    heap.free(r.block);
    r.block = nullptr;
  }
};

/// One lane takes blocks of one size until there are no more.
template <class Ref>
struct fill_alone {
  Ref heap;
  std::uint64_t size;
  void** blocks;
  std::uint64_t capacity;
  std::uint64_t* taken;
  QUARRY_DEVICE void operator()() const {
    std::uint64_t n = 0;
    while (n < capacity) {
      void* p = heap.malloc(size);
      if (p == nullptr) break;
      blocks[n++] = p;
    }
    *taken = n;
  }
};
/// Every lane takes blocks of its own size until it is refused: lanes of a warp leave one by one.
template <class Ref>
struct fill_together {
  Ref heap;
  std::uint32_t largest;
  std::uint32_t* taken;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    const std::size_t size = 16 + me * 2654435761u % largest;
    std::uint32_t n = 0;
    while (n < 4096 && heap.malloc(size) != nullptr) ++n;
    taken[me] = n;
  }
};

template <class Ref>
struct free_list {
  Ref heap;
  void** blocks;
  std::uint64_t count;
  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = global_thread(); i < count; i += simt::grid_threads())
      heap.free(blocks[i]);
  }
};

/// Lanes allocate, use and free for a while, holding a few blocks each.
template <class Ref>
struct churn {
  Ref heap;
  std::uint32_t rounds;
  std::uint32_t largest;
  std::uint32_t* damaged;
  std::uint32_t* refused;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    simt::lane_random draw(me);
    request held[3] = {};
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint32_t slot = draw.below(3);
      request& r = held[slot];
      const std::uint64_t owner = me * 3 + slot;
      if (r.block != nullptr) {
        if (!intact(r, owner)) simt::atomic_ref<std::uint32_t>(*damaged).add(1, simt::relaxed);
        heap.free(r.block);
        r.block = nullptr;
      } else {
        r.size = 1 + draw.below(largest);
        r.block = static_cast<std::byte*>(heap.malloc(r.size));
        if (r.block != nullptr) {
          fill(r, owner);
        } else {
          simt::atomic_ref<std::uint32_t>(*refused).add(1, simt::relaxed);
        }
      }
    }
    for (request& r : held) heap.free(r.block);
  }
};

/// A lane hands its block to the lane beside it, which checks and frees it.
template <class Ref>
struct hand_over {
  Ref heap;
  std::uint64_t* mailboxes;
  std::uint32_t* damaged;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    const std::uint64_t other = me ^ 1;
    request mine{48, static_cast<std::byte*>(heap.malloc(48))};
    if (mine.block == nullptr) {
      simt::atomic_ref<std::uint32_t>(*damaged).add(1, simt::relaxed);
    } else {
      fill(mine, me);
    }
    simt::atomic_ref<std::uint64_t>(mailboxes[other])
        .store(reinterpret_cast<std::uint64_t>(mine.block) | 1, simt::release);
    std::uint64_t letter = 0;
    while ((letter = simt::atomic_ref<std::uint64_t>(mailboxes[me]).load(simt::acquire)) == 0)
      simt::spin();
    const request theirs{48, reinterpret_cast<std::byte*>(letter & ~std::uint64_t{1})};
    if (theirs.block == nullptr) return;
    if (!intact(theirs, other)) simt::atomic_ref<std::uint32_t>(*damaged).add(1, simt::relaxed);
    heap.free(theirs.block);
  }
};

/// One lane, one request, with an alignment.
template <class Ref>
struct malloc_aligned {
  Ref heap;
  std::uint64_t size;
  std::uint64_t alignment;
  void** out;
  QUARRY_DEVICE void operator()() const { out[global_thread()] = heap.malloc(size, alignment); }
};

/// Writes to both ends of a block, and says whether they read back.
struct touch_ends {
  std::byte* block;
  std::uint64_t size;
  std::uint32_t* good;
  QUARRY_DEVICE void operator()() const {
    block[0] = std::byte{17};
    block[size - 1] = std::byte{71};
    *good = block[0] == std::byte{17} && block[size - 1] == std::byte{71};
  }
};

}  // namespace quarry::contract
