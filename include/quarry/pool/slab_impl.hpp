// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The slow paths of slab.hpp, and what it says about itself between kernels.

#include <quarry/pool/slab.hpp>

#include <algorithm>

namespace quarry {

/// A used segment that is worth it, else a free one, else any that has a free slot.
template <slab_tuning T>
QUARRY_DEVICE slab_entry_word basic_slab<T>::find_supply(std::uint32_t c, std::uint32_t shard,
                                                         std::uint32_t* mask) const {
  for (std::uint32_t least = classes_[c].listed_words;; least = 0) {
    for (unsigned attempt = 0; attempt < 8; ++attempt) {
      const std::uint32_t used = rare<&basic_slab::take_used>(c, least);
      if (used == index_set::none) break;
      const std::uint64_t change = rare<&basic_slab::recycle>(used, c, mask, least);
      if (change == 0) continue;
      rare<&basic_slab::let_go>(used, c, change);
      return slab_entry_word::recycled(used);
    }
    if (least == 0) return slab_entry_word::failed();
    std::uint32_t segment = rare<&basic_slab::take_reserved>(shard);
    if (segment == index_set::none) segment = rare<&basic_slab::take_free>(c);
    if (segment == index_set::none) continue;
    segments_.format(segment, c);
    return slab_entry_word::fresh(segment);
  }
}

template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::take_used(std::uint32_t c, std::uint32_t least) const {
  return (least == 0 ? segments_.loose(c) : segments_.worthwhile(c)).take(salt(), 4);
}

template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::take_free(std::uint32_t c) const {
  return segments_.free().take(salt(), classes_[c].capacity >= 64 ? 64 : 4096);
}

/// A reserve is a word: the first segment + 1, or 0, and how many of its segments were asked for. Whoever asks for
/// the one after the last renews it; until that is done, the others do without.
template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::take_reserved(std::uint32_t shard) const {
  if (shape_.reserve() < 2) return index_set::none;
  const std::uint64_t was =
      simt::atomic_ref<std::uint64_t>(reserves_[shard * reserve_stride]).fetch_add(1, simt::by_value);
  const auto first = static_cast<std::uint32_t>(was >> 32);
  const auto asked = static_cast<std::uint32_t>(was);
  if (first != 0 && asked < shape_.reserve()) return first - 1 + asked;
  if (first != 0 ? asked == shape_.reserve() : asked % 64 == 0) return rare<&basic_slab::renew_reserve>(shard);
  return index_set::none;
}

template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::renew_reserve(std::uint32_t shard) const {
  const std::uint32_t first = segments_.free().take_short_run(shape_.reserve(), salt());
  const std::uint64_t fresh = first == index_set::none ? 1 : std::uint64_t{first + 1} << 32 | 1;
  const std::uint64_t was =
      simt::atomic_ref<std::uint64_t>(reserves_[shard * reserve_stride]).exchange(fresh, simt::acq_rel);
  rare<&basic_slab::return_reserve>(was);
  return first;
}

template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::return_reserve(std::uint64_t reserve) const {
  const auto first = static_cast<std::uint32_t>(reserve >> 32);
  const auto asked = static_cast<std::uint32_t>(reserve);
  if (first != 0 && asked < shape_.reserve())
    segments_.free().put_run(first - 1 + asked, shape_.reserve() - asked);
}

template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::supply(std::uint32_t c, std::uint32_t shard, std::uint64_t k) const {
  const auto word = rare<&basic_slab::find_supply>(c, shard, rings_.mask(classes_[c], shard, k));
  rare<&basic_slab::publish>(c, shard, k, word);
}

template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::publish(std::uint32_t c, std::uint32_t shard, std::uint64_t k,
                                          slab_entry_word word) const {
  rings_.publish(classes_[c], shard, k, word);
  if (!word.is_failed())
    simt::atomic_ref<std::uint64_t>(supplied_[shard]).bit_or(std::uint64_t{1} << c, simt::relaxed);
}

/// With a ticket of this shard that may need waiting, or be worth nothing. The lanes that came together stay so: each
/// round is for those whom the last one brought nothing, and ends with a vote of all.
template <slab_tuning T>
QUARRY_DEVICE void* basic_slab<T>::malloc_late(std::uint32_t c, simt::lane_mask company, slab_ticket ticket) const {
  std::uint32_t course = shard();
  drawn d = rare<&basic_slab::look_up>(c, course, company, ticket);
  QUARRY_ROLLED
  for (std::uint32_t round = 0; round < patience; ++round) {
    if (d.word.is_failed() && course != no_course) course = rare<&basic_slab::change_course>(c, course);
    const bool again = d.slot == no_slot && course != no_course;
    const simt::lane_mask late = simt::ballot(company, again);
    if (late == 0) break;
    if (again) d = rare<&basic_slab::draw_again>(c, course % after_flush, late);
  }
  return d.slot != no_slot ? slot(d.word.segment(), c, d.slot) : nullptr;
}

/// Where to draw when a shard had nothing left; no_course: nowhere.
template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::change_course(std::uint32_t c, std::uint32_t course) const {
  const std::uint32_t other = rare<&basic_slab::ready_shard>(c, course % after_flush);
  if (other != shape_.shards) return course / after_flush * after_flush + other;
  if (course >= after_flush) return no_course;
  rare<&basic_slab::flush>();
  return after_flush + shard();
}

/// The tickets of an entry before the i-th, which are worth nothing.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::skip(std::uint32_t c, std::uint32_t shard, std::uint64_t k, std::uint32_t i) const {
  const std::uint32_t tickets = rings_.skip(c, classes_[c], shard, k, i);
  if (tickets != 0) rings_.looked_up(classes_[c], shard, k, tickets);
}

/// A shard after that one whose ring has slots ready; shards: none has.
template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::ready_shard(std::uint32_t c, std::uint32_t after) const {
  for (std::uint32_t distance = 1; distance < shape_.shards; ++distance) {
    const std::uint32_t other = (after + distance) & (shape_.shards - 1);
    if ((simt::atomic_ref<std::uint64_t>(supplied_[other]).load(simt::relaxed) >> c & 1) == 0) continue;
    const slab_ticket next = slab_rings::take_apart(classes_[c], rings_.cursor(c, other).load(simt::relaxed));
    slab_entry_word word{};
    if (next.i != 0 && rings_.look_up(classes_[c], other, next.entry, word) && !word.is_failed()) return other;
  }
  return shape_.shards;
}

/// Makes free what the rings hold.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::flush() const {
  for (std::uint32_t s = 0; s < shape_.shards; ++s) {
    const simt::atomic_ref<std::uint64_t> reserve(reserves_[s * reserve_stride]);
    if (reserve.load(simt::relaxed) >> 32 != 0) rare<&basic_slab::return_reserve>(reserve.exchange(1, simt::acq_rel));
    const simt::atomic_ref<std::uint64_t> supplied(supplied_[s]);
    if (supplied.load(simt::relaxed) == 0) continue;
    for (std::uint64_t rings = supplied.exchange(0, simt::relaxed); rings != 0; rings &= rings - 1)
      rare<&basic_slab::flush_ring>(simt::lowest_bit(rings), s);
  }
}

/// An entry that is still to be supplied is left to those who wait for it: nobody who flushes waits.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::flush_ring(std::uint32_t c, std::uint32_t shard) const {
  const slab_class& d = classes_[c];
  const slab_ticket next = slab_rings::take_apart(d, rings_.cursor(c, shard).load(simt::relaxed));
  slab_entry_word word{};
  if (next.i == 0 || !rings_.look_up(d, shard, next.entry, word)) return;
  const std::uint32_t tickets = rings_.skip(c, d, shard, next.entry, d.capacity);
  if (tickets == 0) return;
  rare<&basic_slab::return_slots>(c, shard, next.entry, d.capacity - tickets, word);
  rings_.looked_up(d, shard, next.entry, tickets);
}

/// Of the tickets of entry k from `first` on, that nobody else drew.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::return_slots(std::uint32_t c, std::uint32_t shard, std::uint64_t k,
                                               std::uint32_t first, slab_entry_word word) const {
  QUARRY_ROLLED
  for (std::uint32_t i = first; i < classes_[c].capacity && !word.is_failed(); i = (i | 31) + 1) {
    const std::uint32_t slots = word.is_fresh() ? slab_segments::present(classes_[c].capacity, i / 32)
                                                : simt::atomic_ref<std::uint32_t>(
                                                      rings_.mask(classes_[c], shard, k)[i / 32])
                                                      .load(simt::relaxed);
    if (slots >> i % 32 != 0)
      rare<&basic_slab::give_back>(word.segment(), c, i / 32, slots & ~std::uint32_t{0} << i % 32);
  }
}

template <slab_tuning T>
QUARRY_DEVICE void* basic_slab<T>::malloc_large(std::uint64_t n) const {
  if (n == 0 || n > std::uint64_t{shape_.segments} << shape_.segment_log2) return nullptr;
  const auto segments = static_cast<std::uint32_t>((n - 1) >> shape_.segment_log2) + 1;
  std::uint32_t first = index_set::none;
  for (int flushed = 0; flushed < 2 && first == index_set::none; ++flushed) {
    if (flushed != 0) rare<&basic_slab::flush>();
    if (segments <= index_set::short_run) first = rare<&basic_slab::take_short_run>(segments);
    for (std::uint32_t from = 0; first == index_set::none; ++from) {
      from = rare<&basic_slab::find_run>(segments, from);
      if (from == index_set::none) break;
      if (rare<&basic_slab::take_run>(from, segments)) first = from;
    }
  }
  if (first == index_set::none) return nullptr;
  segments_.state(first).store(slab_state::run(segments), simt::relaxed);
  return pool_ + (std::uint64_t{first} << shape_.segment_log2);
}

template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::free_large(std::uint32_t segment, std::uint64_t state) const {
  if (slab_state::kind(state) != slab_state::large) return;  // freed before
  segments_.state(segment).store(0, simt::relaxed);
  segments_.free().put_run(segment, slab_state::run_length(state));
}

// ---- between kernels -------------------------------------------------------------------------------

template <slab_tuning T>
std::uint64_t basic_slab<T>::drawn_up(std::uint32_t c) const {
  std::uint64_t slots = 0;
  for (std::uint32_t s = 0; s < shape_.shards; ++s) {
    const slab_ticket next = slab_rings::take_apart(classes_[c], rings_.cursor(c, s).load(simt::relaxed));
    slab_entry_word word{};
    if (next.i == 0 || !rings_.look_up(classes_[c], s, next.entry, word) || word.is_failed()) continue;
    for (std::uint32_t i = next.i; i < classes_[c].capacity; ++i)
      slots += word.is_fresh() || (rings_.mask(classes_[c], s, next.entry)[i / 32] >> i % 32 & 1) != 0 ? 1 : 0;
  }
  return slots;
}

template <slab_tuning T>
bool basic_slab<T>::is_reserved(std::uint32_t segment) const {
  for (std::uint32_t s = 0; s < shape_.shards; ++s) {
    const std::uint64_t reserve = reserves_[s * reserve_stride];
    const std::uint64_t first = (reserve >> 32) - 1;
    if (reserve >> 32 != 0 && segment >= first + static_cast<std::uint32_t>(reserve) &&
        segment < first + shape_.reserve())
      return true;
  }
  return false;
}

template <slab_tuning T>
std::string basic_slab<T>::check_invariants() const {
  if (!segments_.free().hints_hold()) return "a hint to free segments is missing";
  for (std::uint32_t c = 0; c < shape_.classes; ++c)
    if (!segments_.worthwhile(c).hints_hold() || !segments_.loose(c).hints_hold())
      return "a hint to used segments is missing";
  for (std::uint32_t i = 0; i < shape_.segments; ++i) {
    const auto name = [&] { return "segment " + std::to_string(i); };
    const std::uint64_t s = segments_.state(i).load(simt::relaxed);
    const std::uint32_t kind = slab_state::kind(s);
    if (kind == slab_state::large) {
      const std::uint32_t n = slab_state::run_length(s);
      if (n == 0 || n > shape_.segments - i) return name() + " starts a run that leaves the pool";
      for (std::uint32_t j = i; j < i + n; ++j)
        if (segments_.free().contains(j)) return name() + " is in use, but part of its run is free";
      i += n - 1;
      continue;
    }
    if (kind == 0 && is_reserved(i)) {
      if (segments_.free().contains(i)) return name() + " is free, and in reserve";
    } else if (segments_.free().contains(i) != (kind == 0))
      return name() + (kind == 0 ? " is lost: no class has it, and it is not free" : " is free and in use");
    if (kind > shape_.classes) return name() + " has no such class";
    std::uint64_t counts = 0;
    for (std::uint32_t w = 0; w < shape_.bitmap_words(); ++w) {
      const std::uint32_t bits = segments_.word(i, w).load(simt::relaxed);
      const std::uint32_t all =
          kind == 0 || w >= classes_[kind - 1].words ? 0 : slab_segments::present(classes_[kind - 1].capacity, w);
      if ((bits & ~all) != 0) return name() + " has a free slot where there is none";
      if (bits != 0) counts += slab_segments::crossed(0, bits, all);
    }
    if (kind == 0) continue;
    const std::uint32_t c = kind - 1;
    if (s != slab_state::fresh(c) + counts) return name() + " counts its free words wrongly, or is held";
    if (slab_state::count(s, slab_state::wholly_free) == static_cast<std::int32_t>(classes_[c].words))
      return name() + " is empty, but was not released";
    if (slab_state::count(s, slab_state::not_empty) > 0 && !segments_.loose(c).contains(i))
      return name() + " has free slots, but is not listed";
    if (slab_state::count(s, slab_state::well_supplied) >= static_cast<std::int32_t>(classes_[c].listed_words) &&
        !segments_.worthwhile(c).contains(i))
      return name() + " is worth recycling, but is not listed";
  }
  return {};
}

template <slab_tuning T>
heap_statistics basic_slab<T>::statistics() const {
  heap_statistics s;
  s.pool_bytes = std::uint64_t{shape_.segments} << shape_.segment_log2;
  s.classes.resize(shape_.classes);
  for (std::uint32_t c = 0; c < shape_.classes; ++c) s.classes[c].block_bytes = slab_sizes::size_of(c);
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t run = 0;
  std::uint64_t longest = 0;
  for (std::uint32_t i = 0; i < shape_.segments; ++i) {
    const std::uint64_t state = segments_.state(i).load(simt::relaxed);
    const std::uint32_t kind = slab_state::kind(state);
    run = segments_.free().contains(i) ? run + 1 : 0;
    longest = std::max(longest, run);
    if (kind == 0) continue;
    if (kind == slab_state::large && (state & slab_state::withheld) != 0) {
      s.pool_bytes = std::uint64_t{i} << shape_.segment_log2;
      break;
    }
    if (kind == slab_state::large) {
      ++blocks;
      bytes += std::uint64_t{slab_state::run_length(state)} << shape_.segment_log2;
      i += slab_state::run_length(state) - 1;
      continue;
    }
    size_class_statistics& c = s.classes[kind - 1];
    std::uint64_t free = 0;
    for (std::uint32_t w = 0; w < classes_[kind - 1].words; ++w)
      free += simt::popc(segments_.word(i, w).load(simt::relaxed));
    c.free_blocks += free;
    c.live_blocks += classes_[kind - 1].capacity - free;
  }
  for (std::uint32_t c = 0; c < shape_.classes; ++c) {
    const std::uint64_t ready = drawn_up(c);
    s.classes[c].free_blocks += ready;
    s.classes[c].live_blocks -= ready;
    blocks += s.classes[c].live_blocks;
    bytes += s.classes[c].live_blocks * s.classes[c].block_bytes;
  }
  s.live_blocks = blocks;
  s.live_bytes = bytes;
  s.free_bytes = s.pool_bytes - bytes;
  s.largest_free = longest << shape_.segment_log2;
  return s;
}

}  // namespace quarry
