// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the contract suite. Each lane works on array elements that the host reads later.

#include <quarry/heap.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry::contract {

using simt::global_thread;

/// A request of one lane and its result.
struct request {
  std::uint64_t size;
  std::byte* block;
};

/// The expected byte at `index` of the block of request `owner`.
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

/// Every lane allocates the block of its request and fills it.
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

/// Every lane does so from divergent control flow; some lanes return early.
template <class Ref>
struct malloc_diverged {
  Ref heap;
  request* requests;
  std::uint64_t count;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    if (me >= count || me % 7 == 3) return;  // these lanes never allocate
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

/// Counts the blocks whose bytes differ from what their owner wrote.
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

/// Every lane frees the block of another lane.
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

/// One lane allocates blocks of one size until an allocation fails.
template <class Ref>
struct fill_by_one_lane {
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
/// Every lane allocates blocks of its own size until an allocation fails. The lanes of a warp leave
/// the loop one by one.
template <class Ref>
struct fill_by_all_lanes {
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

/// Lanes allocate, fill, check and free blocks; each holds up to three.
template <class Ref>
struct churn {
  Ref heap;
  std::uint32_t rounds;
  std::uint32_t largest;
  std::uint32_t* damaged;
  std::uint32_t* failed;
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
          simt::atomic_ref<std::uint32_t>(*failed).add(1, simt::relaxed);
        }
      }
    }
    for (request& r : held) heap.free(r.block);
  }
};

/// A lane passes its block to its neighbour, which checks and frees it.
template <class Ref>
struct pass_to_neighbour {
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
    std::uint64_t message = 0;
    while ((message = simt::atomic_ref<std::uint64_t>(mailboxes[me]).load(simt::acquire)) == 0)
      simt::spin();
    const request theirs{48, reinterpret_cast<std::byte*>(message & ~std::uint64_t{1})};
    if (theirs.block == nullptr) return;
    if (!intact(theirs, other)) simt::atomic_ref<std::uint32_t>(*damaged).add(1, simt::relaxed);
    heap.free(theirs.block);
  }
};

/// Every lane allocates one block with an alignment.
template <class Ref>
struct malloc_aligned {
  Ref heap;
  std::uint64_t size;
  std::uint64_t alignment;
  void** out;
  QUARRY_DEVICE void operator()() const { out[global_thread()] = heap.malloc(size, alignment); }
};

/// Writes to both ends of a block and checks that the values read back.
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
