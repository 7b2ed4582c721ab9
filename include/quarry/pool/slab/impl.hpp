// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The slow paths of slab.hpp. (Those of large blocks are in slab_large.hpp.)

#include <quarry/pool/slab/slab.hpp>

namespace quarry {

// ---- lanes that are served a little later ---------------------------------------------------------------

/// After a draw of which not all tickets were good, or not slots: some are the limit, or beyond. Who has the limit renews
/// the entry, for others wait for that; these look some times whether it is done.
/// Lanes that want whole segments come here at once, with the place where to look for them. What is left of them draws.
template <slab_tuning T>
QUARRY_DEVICE void* basic_slab<T>::malloc_soon(std::uint32_t c, std::uint32_t capacity,
                                               std::uint32_t entry, simt::lane_mask company,
                                               simt::lane_mask group, slab_word word) const {
  const std::uint32_t lanes = simt::popc(group);
  const std::uint32_t rank = simt::popc(group & simt::lanes_below());
  const bool whole = wants_whole(c, lanes);
  slab_word more = slab_word::nothing();
  bool waits = rank == lanes - 1 && word.left(capacity) < lanes;
  constexpr std::uint32_t beyond_limit = has(slab_fault::refills_twice) ? 1 : 0;
  if (waits && word.ticket() <= word.limit(capacity) + beyond_limit) {
    // What was at a place last is probably free again: it is taken without a look.
    const std::uint32_t plenty = whole ? 0 : is_own(entry) ? 1 : plenty_for(c, frontier_.glance());
    more = take_near(c, capacity, entry, whole, plenty, word);
    if (whole && !more.is_nothing()) {
      place(c).store(more.segment() + 1, simt::relaxed);
      word = more;
      more = slab_word::nothing();
      if (word.left(capacity) < lanes) more = draw(entry, lanes - word.left(capacity));
    } else if (!more.is_nothing()) {
      supply(entry, more, lanes - word.left(capacity), capacity);
    }
    waits = false;
  }
  QUARRY_ROLLED
  for (unsigned looks = 0; looks < short_wait; ++looks) {
    if (waits) waits = !draw_again(entry, capacity, lanes, more);
    if (!simt::any(company, waits)) break;
    simt::spin(250);
  }
  simt::sync_warp(company);
  word.value = simt::shuffle(company, word.value, simt::highest_bit(group));
  more.value = simt::shuffle(company, more.value, simt::highest_bit(group));
  const std::uint32_t left = word.left(capacity);
  const bool again = rank >= left;
  const slab_word mine = again ? more : word;
  const std::uint32_t i = mine.ticket() + rank - (again ? left : 0);
  if (simt::all(company, !mine.is_recycled() && i < mine.size() * capacity))
    return slot(mine.segment(), c, capacity, i);
  return rare<&basic_slab::malloc_late>(c, capacity, entry, company, word.value, more.value);
}

/// For so many lanes whose tickets are beyond the limit: draws for them if the entry was renewed. Returns whether it is
/// not worth while to wait any longer, since there are tickets, or maybe a verdict, or lanes had better help themselves.
template <slab_tuning T>
QUARRY_DEVICE bool basic_slab<T>::draw_again(std::uint32_t entry, std::uint32_t capacity,
                                             std::uint32_t lanes, slab_word& word) const {
  const slab_word seen{entries_.at(entry).load(simt::by_value)};
  if (seen.is_vacant()) return true;
  if (seen.ticket() > seen.limit(capacity)) return seen.is_recycled();
  word = draw(entry, lanes);
  return true;
}

// ---- lanes that must wait, claim or search ----------------------------------------------------------------

/// A lane that is not served at once: what it, and those of its company that want the same class, did so far. It lies
/// on the stack: every kernel that calls malloc would pay for the registers.
template <slab_tuning T>
struct basic_slab<T>::visitor {
  static constexpr std::uint32_t draws = 0xffff;  // how many
  static constexpr std::uint32_t a_verdict = 1u << 16;
  static constexpr std::uint32_t verdicts = 0xffu << 16;  // seen since they came, modulo 256
  static constexpr std::uint32_t drew = 1u << 24;         // in this turn
  static constexpr std::uint32_t holds = 1u << 25;        // tickets that are not looked at yet
  static constexpr std::uint32_t hopeless = 1u << 26;
  static constexpr std::uint32_t done = 1u << 27;   // this lane is served or refused
  static constexpr std::uint32_t apart = 1u << 28;  // the word is not the entry's
  static constexpr std::uint32_t own = 1u << 29;    // nor to be renewed
  static constexpr std::uint32_t no_segment = ~std::uint32_t{0};

  slab_word word;  // that they drew from last
  slab_word next;  // and already again, or nothing
  std::uint32_t notes;
  std::uint32_t entry;
  std::uint32_t c;
  std::uint32_t capacity;  // of a segment
  simt::lane_mask company;
  std::uint32_t segment;  // where its slot is
  std::uint32_t i;

  QUARRY_DEVICE bool noted(std::uint32_t what) const { return (notes & what) != 0; }
};

/// After a draw of which not all tickets were good, or not slots. All lanes of the company stay until all are served
/// or refused.
template <slab_tuning T>
QUARRY_DEVICE void* basic_slab<T>::malloc_late(std::uint32_t c, std::uint32_t capacity,
                                               std::uint32_t entry, simt::lane_mask company,
                                               std::uint64_t drawn, std::uint64_t more) const {
  visitor v{{drawn},
            {more},
            visitor::drew + visitor::holds + visitor::apart + 1,
            entry,
            c,
            capacity,
            company,
            visitor::no_segment,
            0};
  while (rare<&basic_slab::take_turn>(&v)) {
  }
  return v.segment == visitor::no_segment ? nullptr : slot(v.segment, c, capacity, v.i);
}

/// Returns whether there will be another one. The last lane of those that want a class acts for them.
template <slab_tuning T>
QUARRY_DEVICE bool basic_slab<T>::take_turn(visitor* v) const {
  const bool pending = !v->noted(visitor::done);
  const simt::lane_mask group = simt::match_any(v->company, pending ? v->c : ~v->c);
  const std::uint32_t lanes = simt::popc(group);
  const std::uint32_t rank = simt::popc(group & simt::lanes_below());
  const bool acts = pending && rank == lanes - 1;
  if (acts && !v->noted(visitor::holds | visitor::hopeless)) rare<&basic_slab::approach>(v, lanes);
  simt::sync_warp(v->company);
  v->word.value = simt::shuffle(v->company, v->word.value, simt::highest_bit(group));
  v->notes = simt::shuffle(v->company, v->notes, simt::highest_bit(group)) & ~visitor::holds;
  const std::uint32_t beyond =
      v->word.ticket() - v->word.limit(v->capacity);  // the limit, or below it
  const bool draws = pending && v->noted(visitor::drew);
  const bool good = draws && beyond + rank >= 1u << 31;
  const bool claims = good && v->word.is_recycled();
  if (good) {
    v->segment = v->word.segment();
    v->i = v->word.ticket() + rank;
  }
  if (simt::any(v->company, claims)) rare<&basic_slab::claim>(v, claims);
  if (good || v->noted(visitor::hopeless)) v->notes |= visitor::done;
  if (draws && acts && !v->noted(visitor::done)) {
    if (!v->next.is_nothing()) {
      v->word = v->next;
      v->next = slab_word::nothing();
      v->notes = (v->notes | visitor::holds) & ~visitor::apart;
    } else if (wants_whole(v->c, lanes) && v->noted(visitor::apart)) {
      rare<&basic_slab::find_whole>(v, lanes);
    } else if (0 - beyond < lanes &&
               !v->noted(visitor::own)) {  // the limit is one of their tickets
      rare<&basic_slab::renew>(v, lanes + beyond);
    }
  }
  if (pending && !v->noted(visitor::drew | visitor::done)) simt::spin(500);
  return simt::any(v->company, !v->noted(visitor::done));
}

/// For so many lanes that have no slot yet: looks at their entry, and draws if that makes sense.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::approach(visitor* v, std::uint32_t lanes) const {
  const slab_word seen{entries_.at(v->entry).load(simt::by_value)};
  const bool news = seen.is_vacant() && !seen.same_verdict(v->word);
  std::uint32_t notes = v->notes & ~(visitor::drew | visitor::own);
  if (news)
    notes = (notes & ~visitor::verdicts) | ((notes + visitor::a_verdict) & visitor::verdicts);
  if ((news && (notes & visitor::verdicts) == 2 * visitor::a_verdict) ||
      (notes & visitor::draws) == patience) {
    notes |= visitor::hopeless;
  } else if (seen.ticket() <= seen.limit(v->capacity) || (news && !seen.crowded())) {
    // If nobody has the ticket at the limit yet, nobody renews the entry: there is nothing to wait for.
    v->word = draw(v->entry, lanes);
    notes = (notes | visitor::drew) + 1;
  } else if (seen.is_recycled() && frontier_.glance().first() >= shape_.much &&
             rare<&basic_slab::find_own>(v, lanes)) {
    notes |= visitor::drew | visitor::own;
  }
  v->notes = notes;
}

/// Used slots for so many lanes, or fewer, while others renew their entry, which had used ones last. (While there is room, they
/// wait: what they take out of the lists for a moment, others miss, and begin new segments.) Returns whether some were found.
template <slab_tuning T>
QUARRY_DEVICE bool basic_slab<T>::find_own(visitor* v, std::uint32_t lanes) const {
  const bool any_new = frontier_.glance().any_new();
  const slab_word word{rare<&basic_slab::find_used>(v->c, 4u, any_new, lanes)};
  if (!word.is_vacant()) v->word = word;
  return !word.is_vacant();
}

/// Lanes with the right to a slot of a used segment take one each; lanes that look at the same word together. They
/// begin at different places, and go on to the next word: there are at least as many bits set as rights, or coming.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::claim(visitor* v, bool mine) const {
  const std::uint32_t capacity = v->capacity;
  if (mine) v->i = v->i * capacity / v->word.size();  // if free slots were spread evenly
  QUARRY_ROLLED
  do {
    const std::uint32_t w = v->i / 32;
    const simt::lane_mask mates =
        simt::match_any(v->company, mine ? word_of(v->segment, v->i) : ~0u);
    const std::uint32_t rank = simt::popc(mates & simt::lanes_below());
    std::uint32_t got = 0;
    std::uint32_t left = 0;
    if (mine && rank == 0) {
      const auto bits = segments_.bits(v->segment, w);
      const std::uint32_t seen = bits.load(simt::relaxed);
      // From this place on, so that warps with neighbouring tickets do not want the same ones.
      const std::uint32_t ahead = seen & ~std::uint32_t{0} << v->i % 32;
      got = lowest_set_bits(ahead != 0 ? ahead : seen, simt::popc(mates));
      if (got != 0) {
        left = bits.fetch_and(~got, simt::by_value);
        got &= left;
        left &= ~got;
      }
    }
    simt::sync_warp(v->company);
    got = simt::shuffle(v->company, got, simt::lowest_bit(mates));
    left = simt::shuffle(v->company, left, simt::lowest_bit(mates));
    if (mine && rank < simt::popc(got)) {
      v->i = w * 32 + nth_set_bit(got, rank);
      mine = false;
    } else if (mine && left == 0) {
      v->i = (w + 1) * 32 < capacity ? (w + 1) * 32 : 0;
    }
  } while (simt::any(v->company, mine));
}

// ---- renewing an entry ----------------------------------------------------------------------------------

/// Segments for an entry that is used up, or for lanes that want whole ones: some that were used before and are free again,
/// at the place of the last ones. Those that are busy at once rarely meet there. This is what happens mostly.
/// Returns nothing() if there are none, or the entry had used slots last and may find more of them: then it still has
/// to be renewed.
template <slab_tuning T>
QUARRY_DEVICE slab_word basic_slab<T>::take_near(std::uint32_t c, std::uint32_t capacity,
                                                 std::uint32_t entry, bool whole,
                                                 std::uint32_t plenty, slab_word last) const {
  if (last.is_vacant() || last.is_recycled()) return slab_word::nothing();
  // An entry that a warp has for itself takes as many again, so that such entries do not meet.
  std::uint32_t segments = whole || is_own(entry) ? last.size() : wanted(entry, capacity, last);
  const std::uint32_t least = whole ? segments : least_for(entry, capacity);
  const std::uint32_t first =
      segments_.free().take_some_in(last.segment() / 64, segments, least, last.segment(), plenty);
  if (first == index_set::none) return slab_word::nothing();
  constexpr std::uint32_t without_class = has(slab_fault::skips_class_of_last_segment) ? 1 : 0;
  segments_.adopt(first, segments - without_class, c, capacity);
  return slab_word::fresh(first, segments);
}

/// For so many lanes that found no whole segments at their place: others, or new ones; what is still missing they draw.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::find_whole(visitor* v, std::uint32_t lanes) const {
  const std::uint32_t segments = v->word.size();
  slab_word found{rare<&basic_slab::find_free>(v->c, segments, segments)};
  if (found.is_vacant()) found = {rare<&basic_slab::find_new>(v->c, segments)};
  if (found.is_vacant() && segments > 1) found = {rare<&basic_slab::find_free>(v->c, segments, 1u)};
  if (!found.is_vacant()) {
    place(v->c).store(found.segment() + 1, simt::relaxed);
    v->word = found;
  }
  const std::uint32_t left = v->word.left(v->capacity);
  if (left < lanes) v->next = draw(v->entry, lanes - left);
  v->notes |= visitor::holds;
}

/// Renews an entry with whatever is left.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::renew(visitor* v, std::uint32_t lanes) const {
  const slab_word word{rare<&basic_slab::search>(v)};
  if (word.is_vacant()) {
    v->notes = (v->notes & ~visitor::drew) | visitor::hopeless;
    if constexpr (!has(slab_fault::hides_exhaustion))
      entries_.at(v->entry).store(v->word.still_vacant().value, simt::release);
  } else {
    v->notes |= visitor::holds;
    supply(v->entry, word, lanes, v->capacity);
    v->word = word;
  }
}

/// How many segments an entry should get after its last ones: twice what those who wait need; where many wait, or may soon
/// be back, more.
template <slab_tuning T>
QUARRY_DEVICE std::uint32_t basic_slab<T>::wanted(std::uint32_t entry, std::uint32_t capacity,
                                                  slab_word last) const {
  const std::uint32_t waiting =
      slab_word{entries_.at(entry).load(simt::relaxed)}.ticket() - last.limit(capacity);
  const std::uint32_t many = is_own(entry) ? T.own_ahead : waiting < T.crowd ? 2 : T.crowd_ahead;
  const std::uint32_t enough = quotient(waiting * many - 1, capacity) + 1;
  const std::uint32_t most = shape_.longest_run;
  const std::uint32_t least = least_for(entry, capacity);
  return enough < least ? least : enough < most ? enough : most;
}

/// Segments that are free again, if some are soon found. Else new ones, where any free segment would have done: they are
/// rarely missed, for if one in twenty is free, three looks at 64 of them find some. Where there had to be plenty: slots that
/// were used before, then any free segments, and only then new ones; else blocks that live long would end up one to a
/// segment. When there are no new ones, any used slots come before the last free segments: large blocks need these, and
/// sizes that come later. Who searches is waited for, so it should not ask memory more often than it has to.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::search(const visitor* v) const {
  const slab_frontier::view edge = frontier_.glance();
  const std::uint32_t segments = wanted(v->entry, v->capacity, v->word);
  const bool any_new = edge.any_new();
  const std::uint32_t least = any_new ? least_for(v->entry, v->capacity) : 1;
  const std::uint32_t plenty = plenty_for(v->c, edge);
  slab_word word = slab_word::vacant(0);
  for (unsigned looks = 0; word.is_vacant() && looks < T.looks_for_free; ++looks)
    word = {rare<&basic_slab::take_anywhere>(segments, least, plenty, edge.used())};
  if (!word.is_vacant()) return rare<&basic_slab::adopt>(v->c, word.value);
  if (plenty > 1 || !any_new) {
    word = {rare<&basic_slab::find_used>(v->c, 4u, true, all_of_them)};
    if (word.is_vacant() && !any_new)
      word = {rare<&basic_slab::find_used>(v->c, 4u, false, all_of_them)};
    if (word.is_vacant()) word = {rare<&basic_slab::find_free>(v->c, segments, least)};
  }
  if (word.is_vacant() && any_new) word = {rare<&basic_slab::find_new>(v->c, segments)};
  if (word.is_vacant()) {
    rare<&basic_slab::join_runs>();
    word = {rare<&basic_slab::find_free>(v->c, segments, 1u)};
    if (word.is_vacant()) word = {rare<&basic_slab::find_any>(v->c)};
  }
  if (word.is_vacant())
    word = {rare<&basic_slab::find_used>(v->c, all_of_them, false, all_of_them)};
  if (word.is_vacant()) {
    rare<&basic_slab::flush>();
    word = {rare<&basic_slab::find_any>(v->c)};
    if (word.is_vacant())
      word = {rare<&basic_slab::find_used>(v->c, all_of_them, false, all_of_them)};
  }
  return word.value;
}

/// Rights to free slots of a used segment, so many at most, as a word; vacant: none was found in so many attempts.
/// `only_sparse`: of one with a quarter free.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::find_used(std::uint32_t c, std::uint32_t attempts,
                                                     bool only_sparse, std::uint32_t most) const {
  for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
    const std::uint32_t segment =
        only_sparse ? rare<&basic_slab::take_sparse>(c) : rare<&basic_slab::take_used>(c, attempt);
    if (segment == index_set::none) break;
    const std::uint32_t rights = rare<&basic_slab::recycle>(segment, c, most);
    if (rights != 0) return slab_word::recycled(segment, rights).value;
  }
  return slab_word::vacant(0).value;
}

/// Segments that are free again, as a word; vacant: none were soon found.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::find_free(std::uint32_t c, std::uint32_t segments,
                                                     std::uint32_t least) const {
  slab_word word = slab_word::vacant(0);
  for (unsigned attempt = 0; word.is_vacant() && attempt < 4; ++attempt) {
    const std::uint32_t some = rare<&basic_slab::find_some>();
    if (some == index_set::none) break;
    word = {rare<&basic_slab::take_from>(some, segments, least)};
  }
  return rare<&basic_slab::adopt>(c, word.value);
}
/// One, however long it takes: for when there are no new ones.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::find_any(std::uint32_t c) const {
  return rare<&basic_slab::adopt>(c, rare<&basic_slab::take_any>());
}

/// Segments that nobody used before.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::find_new(std::uint32_t c, std::uint32_t segments) const {
  return rare<&basic_slab::adopt>(c, rare<&basic_slab::take_new>(segments));
}

template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::adopt(std::uint32_t c, std::uint64_t word) const {
  segments_.adopt(slab_word{word}.segment(), slab_word{word}.size(), c, shape_.capacity(c));
  return word;
}

/// Up to so many segments side by side, but not fewer than `least`, from any 64 that were used: many may be looking, and
/// hints lead them all to the same words.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::take_anywhere(std::uint32_t segments,
                                                         std::uint32_t least, std::uint32_t plenty,
                                                         std::uint32_t used) const {
  const auto any = static_cast<std::uint32_t>(std::uint64_t{salt()} * used >> 32);
  const std::uint32_t first = segments_.free().take_some_in(any / 64, segments, least, any, plenty);
  return found(first, segments);
}
/// The same from the 64 to which a hint led.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::take_from(std::uint32_t w, std::uint32_t segments,
                                                     std::uint32_t least) const {
  const std::uint32_t first = segments_.free().take_some_in(w, segments, least, salt(), 1);
  return found(first, segments);
}
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::take_any() const {
  return found(segments_.free().take(salt(), 4), 1);
}
/// Up to so many that nobody used before.
template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::take_new(std::uint32_t segments) const {
  const slab_frontier::view seen = frontier_.pass(segments);
  if (!seen.any_new()) return slab_word::vacant(0).value;
  const std::uint32_t left = seen.end() - seen.first();
  return slab_word::fresh(seen.first(), segments < left ? segments : left).value;
}

// ---- taking undrawn tickets back ------------------------------------------------------------------------

/// Each entry is flushed by one lane, but many lanes may be at it.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::flush() const {
  for (std::uint32_t n = 0; n < supplied_.size(); ++n) {
    const std::uint32_t entry = supplied_.take(salt(), 64);
    if (entry == index_set::none) return;
    rare<&basic_slab::flush_entry>(entry);
  }
}

template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::flush_entry(std::uint32_t entry) const {
  const std::uint32_t c = shape_.class_of_entry(entry);
  const std::uint32_t capacity = shape_.capacity(c);
  slab_word word{entries_.at(entry).load(simt::relaxed)};
  do {
    if (!word.has_tickets(capacity)) return;
  } while (
      !entries_.at(entry).compare_exchange(word.value, slab_word::vacant(0).value, simt::acquire));
  const std::uint32_t limit = word.limit(capacity);
  if (word.is_recycled()) {
    const std::uint32_t rights = limit - word.ticket();
    const slab_state before = segments_.renounce(word.segment(), rights, capacity);
    if (segments_.is_event(before, rights, capacity))
      rare<&basic_slab::settle>(word.segment(), c, before, rights, capacity);
    return;
  }
  simt::fence_stores();  // what the entry handed on
  QUARRY_ROLLED
  for (std::uint32_t i = word.ticket(); i < limit;) {
    const std::uint32_t number = quotient(i, capacity);
    const std::uint32_t begin = i - number * capacity;
    if (begin == 0) {
      segments_.give_up(word.segment() + number);
    } else {
      rare<&basic_slab::give_back>(word.segment() + number, c, begin, capacity);
    }
    i += capacity - begin;
  }
}

/// Slots [from, end) of a segment, which the caller owns.
template <slab_tuning T>
QUARRY_DEVICE void basic_slab<T>::give_back(std::uint32_t segment, std::uint32_t c,
                                            std::uint32_t from, std::uint32_t end) const {
  const std::uint32_t capacity = shape_.capacity(c);
  std::uint32_t was = 0;
  QUARRY_ROLLED
  for (std::uint32_t i = from; i < end; i = (i | 31) + 1)
    was = segments_.set_bits(
        segment, i, segments_.present(end, i / 32) & ~std::uint32_t{0} << i % 32, capacity);
  simt::fence_stores();  // the bits before the count
  const slab_state before = segments_.lower(segment, end - from, was, capacity);
  if (segments_.is_event(before, end - from, capacity))
    rare<&basic_slab::settle>(segment, c, before, end - from, capacity);
}

}  // namespace quarry
