// SPDX-License-Identifier: Apache-2.0
#pragma once
/// script_kernel: the lanes of a grid execute a script, and the oracle checks each call.
///
/// A failed run abandons its lanes. Objects that live across a scheduling point must therefore not
/// need their destructors.

#include <quarry/check/oracle.hpp>
#include <quarry/check/sandbox.hpp>
#include <quarry/check/script.hpp>
#include <quarry/check/trace.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>

namespace quarry {

struct script_kernel {
  const sandbox* heap;
  const allocation_script* script;
  shadow_heap* shadow;
  const trace* out;  // nullptr: no trace is written

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
    if (out != nullptr) out->malloc_called(lane, n);
    shadow->malloc_called(lane, n);
    void* const p = heap->malloc(n);
    if (out != nullptr) out->malloc_returned(lane, p, number);
    if (!shadow->malloc_returned(number, lane, p, n)) simt::fail(shadow->violation());
  }

  /// Effects: frees the block if it is live.
  void release(std::uint32_t number, std::uint32_t lane) const {
    const shadow_heap::block b = shadow->remove(number);
    if (b.begin == nullptr) return;
    if (out != nullptr) out->free_called(lane, b.begin, number);
    if (!shadow->still_painted(b, number, lane)) simt::fail(shadow->violation());
    heap->free(b.begin);
  }
};

}  // namespace quarry
