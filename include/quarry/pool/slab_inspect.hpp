// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What each segment of a slab heap is, for statistics and pictures. Between kernels, metadata only.
///
/// A segment of a class has slots of three kinds: free (their bits are set), held by the entry of a ring that has not
/// handed them out yet, and live. Entries are few, so the second kind is found by a walk over the rings first.

#include <quarry/pool/slab.hpp>

#include <cstdint>
#include <unordered_map>

namespace quarry {

template <slab_tuning T>
template <class Visit>
void basic_slab<T>::visit_pieces(Visit&& visit) const {
  std::unordered_map<std::uint32_t, std::uint64_t> in_rings;  // slots of a segment
  for (std::uint32_t c = 0; c < shape_.classes; ++c)
    for (std::uint32_t s = 0; s < shape_.shards; ++s) {
      const slab_ticket next =
          slab_rings::take_apart(classes_[c], rings_.cursor(c, s).load(simt::relaxed));
      slab_entry_word word{};
      if (next.i == 0 || !rings_.look_up(classes_[c], s, next.entry, word) || word.is_failed())
        continue;
      for (std::uint32_t i = next.i; i < classes_[c].capacity; ++i)
        in_rings[word.segment()] +=
            word.is_fresh() || (rings_.mask(classes_[c], s, next.entry)[i / 32] >> i % 32 & 1) != 0
                ? 1
                : 0;
    }
  for (std::uint32_t i = 0; i < shape_.segments; ++i) {
    pool_piece piece{std::uint64_t{i} << shape_.segment_log2, segment_bytes()};
    const std::uint64_t state = segments_.state(i).load(simt::relaxed);
    const std::uint32_t kind = slab_state::kind(state);
    if (kind == slab_state::large) {
      const std::uint32_t length = slab_state::run_length(state);
      piece.size = piece.block_bytes = std::uint64_t{length} << shape_.segment_log2;
      const bool withheld = (state & slab_state::withheld) != 0;
      piece.kind = withheld ? piece_kind::withheld : piece_kind::single;
      piece.blocks = piece.live = withheld ? 0 : 1;
      i += length - 1;
    } else if (kind != 0) {
      std::uint64_t free = 0;
      for (std::uint32_t w = 0; w < classes_[kind - 1].words; ++w)
        free += simt::popc(segments_.word(i, w).load(simt::relaxed));
      if (const auto held = in_rings.find(i); held != in_rings.end()) free += held->second;
      piece.kind = piece_kind::blocks;
      piece.block_bytes = slab_sizes::size_of(kind - 1);
      piece.blocks = classes_[kind - 1].capacity;
      piece.live = piece.blocks - free;
    } else if (!segments_.free().contains(i)) {
      piece.kind = piece_kind::kept;
    }
    visit(piece);
  }
}

}  // namespace quarry
