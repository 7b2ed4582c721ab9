// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Large blocks of slab.hpp: runs of segments.
///
/// A run comes from what large blocks gave back (`runs` in slab_segments.hpp), or from other free segments, if it is soon
/// found; then from the segments that nobody used; then from wherever one is, in the end after the undrawn tickets of
/// all entries were taken back. Its first segment's state says how long it is. Nothing waits.

#include <quarry/pool/slab/slab.hpp>

namespace quarry {

template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::take_run(std::uint32_t segments) const {
  std::uint32_t first = index_set::none;
  if (segments > 1) first = segments_.runs().take_run(segments, salt());
  return first != index_set::none ? first : segments_.free().take_run(segments, salt());
}
/// Short runs, if some are soon found: a walk over all words takes longer than to begin new ones.
template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::take_run_soon(std::uint32_t segments) const {
  if (segments > index_set::short_run) return rare<&basic_slab::take_run>(segments);
  std::uint32_t first = index_set::none;
  if (segments > 1) {
    first = segments_.runs().take_soon(segments, salt(), 16);
  } else {
    const std::uint32_t used = frontier_.look().used();
    for (unsigned looks = 0; first == index_set::none && looks < T.looks_for_free; ++looks) {
      const slab_word word{rare<&basic_slab::take_anywhere>(1u, 1u, 1u, used)};
      if (!word.is_vacant()) first = word.segment();
    }
  }
  return first != index_set::none ? first : segments_.free().take_soon(segments, salt(), 4096);
}
/// Segments that nobody used before, all of them or none. Short runs by one addition, since many may want some at once;
/// where that goes beyond the end, what is left before it becomes free.
template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::take_new_run(std::uint32_t segments) const {
  if (segments <= index_set::short_run) {
    const slab_word some{rare<&basic_slab::take_new>(segments)};
    if (some.size() == segments) return some.segment();
    segments_.free().put_run(some.segment(), some.size());  // vacant: none
    return index_set::none;
  }
  return frontier_.take(segments);
}
/// Those that are left, of which there are too few for a run: into the set, where they may join others.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::open_all() const {
  const slab_frontier::view rest = frontier_.take_rest();
  if (rest.any_new()) segments_.free().put_run(rest.first(), rest.end() - rest.first());
}

template <slab_tuning T>
QUARRY_DEVICE void* basic_slab<T>::malloc_large(std::uint64_t n) const {
  if (n == 0 || n > std::uint64_t{shape_.segments} << shape_.segment_log2) return nullptr;
  const auto segments = static_cast<std::uint32_t>((n - 1) >> shape_.segment_log2) + 1;
  std::uint32_t first = rare<&basic_slab::take_run_soon>(segments);
  if (first == index_set::none) first = rare<&basic_slab::take_new_run>(segments);
  if (first == index_set::none) first = rare<&basic_slab::take_run>(segments);
  if (first == index_set::none) {
    rare<&basic_slab::open_all>();
    rare<&basic_slab::flush>();
    rare<&basic_slab::join_runs>();
    first = rare<&basic_slab::take_run>(segments);
  }
  if (first == index_set::none) return nullptr;
  segments_.state_word(first).store(slab_state::run(segments).word, simt::relaxed);
  return pool_ + (std::uint64_t{first} << shape_.segment_log2);
}

template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::free_large(std::uint32_t segment, slab_state state) const {
  if (state.kind() != slab_state::large || state.is_withheld()) return;  // nobody's: freed before
  segments_.state_word(segment).store(0, simt::relaxed);
  const index_set set = state.run_length() == 1 ? segments_.free() : segments_.runs();
  set.put_run(segment, state.run_length());
}

}  // namespace quarry
