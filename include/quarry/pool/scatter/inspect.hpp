// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_inspector: checks the invariants of a scatter and gathers its statistics. Requires
/// quiescence.
///
/// Invariants:
///   - count == bits set; no bit at or above the capacity; no bit in an empty page or a run.
///   - The first page of a run of n pages is followed by n - 1 continuation pages, and no other
///     page is a continuation page.
///   - A page whose full bit is set is full.

#include <quarry/core/statistics.hpp>
#include <quarry/pool/scatter/pages.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace quarry {

class scatter_inspector {
 public:
  /// A page has `units` units of `unit` bytes, and one word of `bits` per 32 units.
  scatter_inspector(const scatter_pages& pages, const std::uint32_t* bits, std::uint32_t units,
                    std::uint64_t unit)
      : pages_(pages), bits_(bits), units_(units), unit_(unit) {}

  std::string check() const {
    std::uint32_t run_end = 0;
    for (std::uint32_t page = 0; page < pages_.count(); ++page) {
      const scatter_state state = pages_.at(page);
      const bool inside = page < run_end;
      if (state.is_run() && !inside) run_end = page + std::max(state.run_length(), 1u);
      if (const char* wrong = check(page, state, inside); *wrong != 0)
        return "page " + std::to_string(page) + " " + wrong;
    }
    return run_end <= pages_.count() ? std::string() : "a run extends beyond the pool";
  }

  heap_statistics statistics() const {
    std::map<std::uint64_t, size_class_statistics> classes;  // by block size
    std::uint64_t blocks = 0;
    std::uint64_t live = 0;
    std::uint64_t empty_bytes = 0;  // adjacent empty pages
    std::uint64_t largest = 0;
    for (std::uint32_t page = 0; page < pages_.count(); ++page) {
      const scatter_state state = pages_.at(page);
      empty_bytes = state.empty() ? empty_bytes + page_bytes() : 0;
      largest = std::max(largest, empty_bytes);
      if (state.empty()) continue;
      if (state.is_run()) {
        if (state.run_length() != 0) ++blocks;
        live += page_bytes();
      } else {
        const std::uint64_t size = units_ / state.capacity() * unit_;
        size_class_statistics& c = classes[size];
        c.block_bytes = size;
        c.live_blocks += state.count();
        c.free_blocks += state.capacity() - state.count();
        blocks += state.count();
        live += state.count() * size;
        if (!state.full()) largest = std::max(largest, size);
      }
    }
    heap_statistics s;
    s.pool_bytes = pages_.count() * page_bytes();
    s.live_blocks = blocks;
    s.live_bytes = live;
    s.free_bytes = s.pool_bytes - live;
    s.largest_free = largest;
    for (const auto& [size, c] : classes) s.classes.push_back(c);
    return s;
  }

  /// Calls visit(pool_piece) for every page of chunks, every empty page and every run.
  template <class Visit>
  void visit_pieces(Visit&& visit) const {
    for (std::uint32_t page = 0, pages = 0; page < pages_.count(); page += pages) {
      const scatter_state state = pages_.at(page);
      pages = state.is_run() ? std::max(state.run_length(), 1u) : 1;
      const std::uint64_t at = page * page_bytes(), size = pages * page_bytes();
      if (state.empty())
        visit(pool_piece{at, size, piece_kind::free});
      else if (state.is_run())
        visit(pool_piece{at, size, piece_kind::single, size, 1, 1});
      else
        visit(pool_piece{at, size, piece_kind::blocks, units_ / state.capacity() * unit_,
                         state.capacity(), state.count()});
    }
  }

 private:
  std::uint64_t page_bytes() const { return units_ * unit_; }

  /// Returns the violated invariant of a page, or "". `inside`: the page is not the first of a run.
  const char* check(std::uint32_t page, scatter_state state, bool inside) const {
    if (pages_.is_marked_full(page) && !state.full()) return "has room and is marked as full";
    if (inside && !(state.is_run() && state.run_length() == 0))
      return "is part of a run, but its word is not";
    if (!inside && state.is_run() && state.run_length() == 0)
      return "continues a run that does not exist";
    const std::uint32_t capacity = state.is_run() ? 0 : state.capacity();
    std::uint32_t set = 0;
    for (std::uint32_t chunk = 0; chunk < units_; chunk += 32) {
      const std::uint32_t word = bits_[page * std::uint64_t{(units_ + 31) / 32} + chunk / 32];
      set += simt::popc(word);
      const std::uint32_t present = capacity > chunk ? capacity - chunk : 0;
      if (present < 32 && word >> present != 0) return "has bits set beyond its chunks";
    }
    if (!state.is_run() && set != state.count())
      return "has a count that differs from the number of set bits";
    return "";
  }

  scatter_pages pages_;
  const std::uint32_t* bits_;
  std::uint32_t units_;
  std::uint64_t unit_;
};

}  // namespace quarry
