// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a slab heap says about itself between kernels, from its metadata.
///
/// A segment of a class has slots of three kinds: free, held by an entry that has not handed them out yet, and live.
/// Entries are few, so the second kind is found by a walk over them first.

#include <quarry/pool/slab/slab.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace quarry {

template <slab_tuning T>
template <class Visit>
void basic_slab<T>::visit_entries(Visit&& visit) const {
  for (std::uint32_t e = 0; e < shape_.entries(); ++e) {
    const std::uint32_t c = shape_.class_of_entry(e);
    if (const slab_word word{entries_.at(e).load(simt::relaxed)};
        word.has_tickets(shape_.capacity(c)))
      visit(c, e, word);
  }
}

/// What entries hold of a segment: slots of fresh ones, and rights to slots whose bits are set.
template <slab_tuning T>
struct basic_slab<T>::holdings {
  std::unordered_map<std::uint32_t, std::uint32_t> slots;
  std::unordered_map<std::uint32_t, std::uint32_t> rights;

  static std::uint32_t in(const std::unordered_map<std::uint32_t, std::uint32_t>& all,
                          std::uint32_t segment) {
    const auto at = all.find(segment);
    return at == all.end() ? 0 : at->second;
  }
  std::uint32_t of(std::uint32_t segment) const { return in(slots, segment) + in(rights, segment); }
};

template <slab_tuning T>
typename basic_slab<T>::holdings basic_slab<T>::held_by_entries() const {
  holdings all;
  visit_entries([&](std::uint32_t c, std::uint32_t, slab_word word) {
    const std::uint32_t capacity = shape_.capacity(c);
    if (word.is_recycled()) {
      all.rights[word.segment()] += word.size() - word.ticket();
      return;
    }
    for (std::uint32_t n = word.ticket() / capacity; n < word.size(); ++n)
      all.slots[word.segment() + n] +=
          capacity - std::min(word.ticket() - std::min(word.ticket(), n * capacity), capacity);
  });
  return all;
}

template <slab_tuning T>
template <class Visit>
void basic_slab<T>::visit_pieces(Visit&& visit) const {
  const holdings held = held_by_entries();
  for (std::uint32_t i = 0; i < shape_.segments; ++i) {
    pool_piece piece{std::uint64_t{i} << shape_.segment_log2, segment_bytes()};
    const slab_state state = segments_.state(i);
    const bool in_use = !is_free(i);
    if (in_use && state.kind() == slab_state::large) {
      const std::uint32_t length = state.run_length();
      piece.size = piece.block_bytes = std::uint64_t{length} << shape_.segment_log2;
      piece.kind = state.is_withheld() ? piece_kind::uncommitted : piece_kind::single;
      piece.blocks = piece.live = state.is_withheld() ? 0 : 1;
      i += length - 1;
    } else if (in_use) {
      const std::uint32_t c = state.kind() - 1;
      piece.block_bytes = slab_sizes::size_of(c);
      piece.blocks = shape_.capacity(c);
      piece.live = segments_.taken(state, shape_.capacity(c)) - held.of(i);
      piece.kind = piece.live == 0 ? piece_kind::kept : piece_kind::blocks;
    }
    visit(piece);
  }
}

template <slab_tuning T>
heap_statistics basic_slab<T>::statistics() const {
  heap_statistics s;
  s.classes.resize(shape_.classes);
  for (std::uint32_t c = 0; c < shape_.classes; ++c)
    s.classes[c].block_bytes = slab_sizes::size_of(c);
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t withheld = 0;
  std::uint64_t run = 0;
  std::uint64_t longest = 0;
  visit_pieces([&](const pool_piece& piece) {
    run = piece.kind == piece_kind::free ? run + piece.size : 0;
    longest = std::max(longest, run);
    if (piece.kind == piece_kind::uncommitted) withheld = piece.size;
    blocks += piece.live;
    bytes += piece.live * piece.block_bytes;
    if (piece.kind != piece_kind::blocks && piece.kind != piece_kind::kept) return;
    size_class_statistics& c = s.classes[slab_sizes::class_of(piece.block_bytes)];
    c.live_blocks += piece.live;
    c.free_blocks += piece.blocks - piece.live;
  });
  s.pool_bytes = (std::uint64_t{shape_.segments} << shape_.segment_log2) - withheld;
  s.live_blocks = blocks;
  s.live_bytes = bytes;
  s.free_bytes = s.pool_bytes - bytes;
  s.largest_free = longest;
  return s;
}

template <slab_tuning T>
std::string basic_slab<T>::check_invariants() const {
  if (!segments_.free().hints_hold() || !segments_.runs().hints_hold() || !supplied_.hints_hold())
    return "a hint to free segments or entries is missing";
  for (std::uint32_t c = 0; c < shape_.classes; ++c)
    if (!segments_.dense(c).hints_hold() || !segments_.sparse(c).hints_hold())
      return "a hint to used segments is missing";
  std::string wrong;
  visit_entries([&](std::uint32_t, std::uint32_t e, slab_word) {
    if (!supplied_.contains(e))
      wrong = "entry " + std::to_string(e) + " has tickets, but is not listed";
  });
  const holdings held = held_by_entries();
  for (std::uint32_t i = 0; i < shape_.segments && wrong.empty(); ++i) {
    const slab_state s = segments_.state(i);
    if (s.kind() == slab_state::large) {
      const std::uint32_t n = s.run_length();
      if (n == 0 || n > shape_.segments - i)
        return "segment " + std::to_string(i) + " starts a run that leaves the pool";
      for (std::uint32_t j = i; j < i + n; ++j)
        if (segments_.is_free(j))
          return "segment " + std::to_string(j) + " is part of a run, and free";
      i += n - 1;
    } else if (const char* const what = check_segment(i, s, held); *what != '\0') {
      wrong = "segment " + std::to_string(i) + what;
    }
  }
  return wrong;
}

template <slab_tuning T>
const char* basic_slab<T>::check_segment(std::uint32_t i, slab_state s,
                                         const holdings& held) const {
  if (s.kind() > shape_.classes) return " has no such class";
  if (segments_.free().contains(i) && segments_.runs().contains(i)) return " is free twice";
  const bool has_class = s.kind() != 0;
  const std::uint32_t capacity = has_class ? shape_.capacity(s.kind() - 1) : 0;
  const std::uint32_t taken = has_class ? segments_.taken(s, capacity) : 0;
  const bool few = segments_.is_few(capacity);
  std::uint32_t free = 0;
  for (std::uint32_t w = 0; w < shape_.bitmap_words(); ++w) {
    const std::uint32_t bits = segments_.bits(i, w).load(simt::relaxed);
    const std::uint32_t present = w * 32 < capacity ? segments_.present(capacity, w) : 0;
    if ((bits & ~present) != 0) return " has a bit where there is no slot";
    free += simt::popc(bits);
  }
  if (is_free(i)) {
    if (free != 0) return " is free, and has a bit set";
    const bool idle = taken == capacity || (few && taken == 0);
    return idle && held.of(i) == 0 ? "" : " is free and in use";
  }
  if (!has_class) return " is lost: no class has it, and it is not free";
  if (taken == 0 || taken > capacity) return " counts its slots wrongly";
  if (!few && s.coming() != 0) return " waits for bits";
  if (few && s.bits() >> capacity != 0) return " has a bit where there is no slot";
  if (free != (few ? 0 : capacity - taken) + held.in(held.rights, i))
    return " does not count the bits that are set";
  if (held.of(i) > taken) return " has entries with more slots than are taken";
  const std::uint32_t c = s.kind() - 1;
  if (taken < capacity && !segments_.dense(c).contains(i) && !segments_.sparse(c).contains(i))
    return " has free slots, but is not listed";
  return "";
}

}  // namespace quarry
