// SPDX-License-Identifier: Apache-2.0
#pragma once
/// script_kernel: the lanes of a grid carry out a script, with the oracle looking on.
///
/// What a lane keeps across a yield point has no destructor: a failed run abandons its lanes.

#include <quarry/check/oracle.hpp>
#include <quarry/check/script.hpp>
#include <quarry/check/story.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>

namespace quarry {

template <allocator A>
struct script_kernel {
  A heap;
  const allocation_script* script;
  shadow_heap* shadow;
  const story* told;  // nullptr: nobody listens

  void operator()() const {
    const std::uint64_t thread = simt::global_thread();
    const auto lane = static_cast<std::uint32_t>(thread);
    const std::uint32_t last = script->last_of(thread);
    for (std::uint32_t i = script->first_of(thread); i < last; ++i) {
      if (!script->kept(i)) continue;
      const operation& op = script->at(i);
      if (op.frees)
        release(op.block, lane);
      else
        request(i, op.size, lane);
    }
  }

  void request(std::uint32_t number, std::uint64_t n, std::uint32_t lane) const {
    if (told != nullptr) told->asks(lane, n);
    shadow->asked(lane, n);
    void* const p = heap.malloc(n);
    if (told != nullptr) told->gets(lane, p, number);
    if (!shadow->received(number, lane, p, n)) simt::fail(shadow->complaint());
  }

  /// Frees the block if it is live.
  void release(std::uint32_t number, std::uint32_t lane) const {
    if constexpr (A::can.frees_one) {
      const shadow_heap::block b = shadow->take(number);
      if (b.begin == nullptr) return;
      if (told != nullptr) told->frees(lane, b.begin, number);
      if (!shadow->still_painted(b, number, lane)) simt::fail(shadow->complaint());
      heap.free(b.begin);
    }
  }
};

}  // namespace quarry
