// SPDX-License-Identifier: Apache-2.0
#pragma once
/// index_set: which of N things are there to be taken; many lanes put and take at once, the lowest first.
///
///   top     [ 1 ……………………………………… ]                one bit for 64 words of `some`
///   some    [ 1 0 1 …………… ][ 0 0 …… ]              one bit for a word of `words`: not empty, perhaps
///   words   [ 0110… ][ 0000… ][ 1111… ] …           one bit for each index: in the set
///
/// Neighbouring words lie far apart: indices that are busy at once are often neighbours, and what goes to one line of memory
/// queues.
///
/// The words decide; the two levels above are hints that save the walk over empty words. A taker follows the
/// hints down to a low word, and takes a bit of it by one atomic. How many of the lowest words it chooses
/// among is the caller's `reach`: 1 keeps the set compact, more keeps takers apart; a taker that loses a race
/// reaches further.
///
/// Invariant: between calls a word that is not empty has its bit in `some`, and so on upwards. Whoever makes a
/// word non-empty sets the hint. Whoever empties it clears the hint, then looks at the word again and sets the
/// hint if it is not empty any more: a hint is set by a read-modify-write that releases and cleared by one that
/// acquires (by its value: who has not cleared it does not look), so of a put and a clearing that meet either the put's
/// hint comes second, or the second look sees the put. A hint to an empty word costs who follows it: a set that is
/// nearly empty, with hints that say otherwise, is slow for everybody.
/// Ordering: put releases and take acquires: what was done before the put is past for the taker.
/// Bound: a taker follows at most as many empty hints as there are words; one that lost `patience` races walks over
/// all words once. none means that the hints led nowhere; while another lane is between clearing a hint and
/// setting it again, that can be said too early.

#include <quarry/concurrent/bitmap.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/out_of_line.hpp>
#include <quarry/simt/random.hpp>

#include <algorithm>
#include <cstdint>

namespace quarry {

class index_set {
  /// What is not done every time, and would be written out wherever a set is used.
  template <auto Member, class... Arguments>
  QUARRY_DEVICE auto rare(Arguments... arguments) const {
    return simt::out_of_line<Member>(*this, arguments...);
  }

 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// A run this short is looked for inside one word.
  static constexpr std::uint32_t short_run = 32;

  index_set() = default;  // uninitialised, so that one may be a __device__ or __constant__ global
  index_set(carve& metadata, const char* name, std::uint32_t size)
      : index_set(metadata.take<std::uint64_t>(name, length(size)), size) {}
  /// A view of length(size) words, which stay the caller's.
  QUARRY_DEVICE index_set(std::uint64_t* words, std::uint32_t size) : size_(size), words_(words) {}
  QUARRY_DEVICE static constexpr std::uint64_t length(std::uint32_t n) {
    return std::uint64_t{places_for(n)} + parts(parts(n)) + parts(parts(parts(n)));
  }

  QUARRY_DEVICE std::uint32_t size() const { return size_; }

  /// All indices in the set: the share of one lane. Nobody else may use it yet. (Zeroed memory: none is.)
  QUARRY_DEVICE void fill(std::uint64_t lane, std::uint64_t lanes) const;

  /// `order`: relaxed for sets whose members are looked at again by who takes them.
  QUARRY_DEVICE void put(std::uint32_t i, std::memory_order order = simt::release) const {
    if (word(i / 64).fetch_or(bit(i), order) == 0) set_hint(i / 64);
  }
  /// The first n indices from `first` on.
  QUARRY_DEVICE void put_run(std::uint32_t first, std::uint32_t n) const;

  /// Takes one index; none: the set was empty.
  QUARRY_DEVICE std::uint32_t take(std::uint32_t salt, std::uint32_t reach) const {
    const std::uint32_t i = rare<&index_set::take_in_a_word>(1u, salt, reach);
    return i == lost ? rare<&index_set::take_lowest>() : i;
  }
  /// n <= short_run indices side by side in one word; it gives up soon, if others are faster or there are too few.
  QUARRY_DEVICE std::uint32_t take_soon(std::uint32_t n, std::uint32_t salt,
                                        std::uint32_t reach) const {
    QUARRY_ROLLED
    for (unsigned tries = 0; tries < 4; ++tries) {
      const std::uint32_t i = rare<&index_set::try_in_a_word>(n, salt, reach);
      if (i != lost && i != misled) return i;
      salt = simt::scramble(salt + 1);
      reach *= 2;
    }
    return none;
  }
  /// Takes n indices side by side and returns the first; none: there were no such.
  QUARRY_DEVICE std::uint32_t take_run(std::uint32_t n, std::uint32_t salt) const {
    if (n == 1) return take(salt, 4096);
    const std::uint32_t first =
        n <= short_run ? rare<&index_set::take_in_a_word>(n, salt, 16u) : lost;
    if (first != lost) return first;
    QUARRY_ROLLED
    for (std::uint32_t from = 0;; ++from) {
      from = rare<&index_set::find_run>(n, from);
      if (from == none || rare<&index_set::take_all>(from, n)) return from;
    }
  }
  // The parts of that.
  /// The same for n <= short_run, where all of them are in one word; lost: others were faster, or found too little.
  QUARRY_DEVICE std::uint32_t take_in_a_word(std::uint32_t n, std::uint32_t salt,
                                             std::uint32_t reach) const;
  QUARRY_DEVICE std::uint32_t take_lowest() const;
  /// Where n indices lie side by side, the first of them `from` or above; none: nowhere.
  QUARRY_DEVICE std::uint32_t find_run(std::uint32_t n, std::uint32_t from) const;
  /// The run from `first` on, or nothing.
  QUARRY_DEVICE bool take_all(std::uint32_t first, std::uint32_t n) const;

  /// A word with something in it, one of the `reach` lowest, as far as the hints know; none: they know of none.
  QUARRY_DEVICE std::uint32_t find(std::uint32_t salt, std::uint32_t reach) const;
  /// Up to n indices side by side among the 64 of word w, but at least so many: the first of them, and in n how many;
  /// or none, also if others were faster, or if there are less than `plenty` in all. It looks from place `near` on first.
  /// With plenty == 0 it does not look at all, but takes them at `near`, if they are there. No calls, no loops that wait.
  QUARRY_DEVICE std::uint32_t take_some_in(std::uint32_t w, std::uint32_t& n, std::uint32_t least,
                                           std::uint32_t near, std::uint32_t plenty) const;

  /// All that is here goes to another set of the same size.
  QUARRY_DEVICE void move_to(const index_set& other) const;

  /// Sees to it that this index is not there. Returns whether it was the last one of its word: then the caller drops the
  /// hint, soon, and looks again.
  QUARRY_DEVICE bool remove(std::uint32_t i) const {
    return word(i / 64).fetch_and(~bit(i), simt::relaxed) == bit(i);
  }
  QUARRY_DEVICE std::uint64_t drop_hint(std::uint32_t i) const {
    return some(i / 4096).fetch_and(~bit(i / 64), simt::by_value);
  }
  /// `hints`: what drop_hint returned. If there was no hint, whoever dropped it looks again, or a put has still to set it.
  QUARRY_DEVICE void look_again(std::uint32_t i, std::uint64_t hints) const {
    const std::uint32_t w = i / 64;
    if ((hints & bit(w)) == 0) return;
    if (hints == bit(w) &&
        (top(w / 4096).fetch_and(~bit(w / 64), simt::by_value) & bit(w / 64)) != 0 &&
        some(w / 64).load(simt::relaxed) != 0)
      top(w / 4096).fetch_or(bit(w / 64), simt::after_loads);
    if (word(w).load(simt::relaxed) != 0) set_hint(w);
  }

  // Between kernels.
  bool contains(std::uint32_t i) const { return (words_[place(i / 64)] & bit(i)) != 0; }
  std::uint32_t count() const {
    std::uint32_t n = 0;
    for (std::uint32_t w = 0; w < words(); ++w) n += simt::popc(words_[place(w)]);
    return n;
  }
  /// Whether no hint is missing.
  bool hints_hold() const {
    for (std::uint32_t w = 0; w < words(); ++w)
      if (words_[place(w)] != 0 && (words_[places() + w / 64] & bit(w)) == 0) return false;
    for (std::uint32_t s = 0; s < hint_words(); ++s)
      if (words_[places() + s] != 0 && (words_[places() + hint_words() + s / 64] & bit(s)) == 0)
        return false;
    return true;
  }

 private:
  static constexpr unsigned patience = 32;
  static constexpr std::uint32_t lost = none - 1;    // a race
  static constexpr std::uint32_t misled = none - 2;  // by a hint

  QUARRY_DEVICE static constexpr std::uint32_t parts(std::uint32_t n) { return ceil_div(n, 64u); }
  QUARRY_DEVICE static constexpr std::uint64_t bit(std::uint32_t i) {
    return std::uint64_t{1} << i % 64;
  }
  QUARRY_DEVICE std::uint32_t words() const { return parts(size_); }
  QUARRY_DEVICE std::uint32_t hint_words() const { return parts(words()); }
  /// For the words: a power of two.
  QUARRY_DEVICE static constexpr std::uint32_t places_for(std::uint32_t n) {
    return 2u << log2_floor((n - 1) / 64 | 1);
  }
  QUARRY_DEVICE std::uint32_t places() const { return places_for(size_); }
  QUARRY_DEVICE std::uint32_t place(std::uint32_t w) const { return spread(w, places() - 1); }

  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> word(std::uint32_t w) const {
    return simt::atomic_ref<std::uint64_t>(words_[place(w)]);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> some(std::uint32_t s) const {
    return simt::atomic_ref<std::uint64_t>(words_[places() + s]);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> top(std::uint32_t t) const {
    return simt::atomic_ref<std::uint64_t>(words_[places() + hint_words() + t]);
  }

  /// Word w was empty, and is not now. Who clears the hint later acquires that: then it finds what is there.
  QUARRY_DEVICE void set_hint(std::uint32_t w) const {
    if (some(w / 64).fetch_or(bit(w), simt::after_loads) == 0)
      top(w / 4096).fetch_or(bit(w / 64), simt::after_loads);
  }
  /// Word w was empty.
  QUARRY_DEVICE void clear_hint(std::uint32_t w) const { look_again(w * 64, drop_hint(w * 64)); }

  /// Takes those of the bits that are there.
  QUARRY_DEVICE std::uint64_t take_bits(std::uint32_t w, std::uint64_t bits) const {
    const std::uint64_t was = word(w).fetch_and(~bits, simt::by_value);
    if ((was & bits) != 0 && (was & ~bits) == 0) rare<&index_set::clear_hint>(w);
    return was & bits;
  }
  /// n <= 64 of word w, from `place` on, or nothing.
  QUARRY_DEVICE bool take_all_in(std::uint32_t w, unsigned place, std::uint32_t n) const {
    const std::uint64_t run = ~std::uint64_t{0} >> (64 - n) << place;
    const std::uint64_t got = rare<&index_set::take_bits>(w, run);
    if (got != run) rare<&index_set::put_bits>(w, got);
    return got == run;
  }
  QUARRY_DEVICE void put_bits(std::uint32_t w, std::uint64_t bits) const {
    if (bits != 0 && word(w).fetch_or(bits, simt::release) == 0) set_hint(w);
  }

  /// One of the `reach` lowest set bits. Requires: there is one.
  // NOLINTNEXTLINE(readability-convert-member-functions-to-static): rare<> calls members
  QUARRY_DEVICE unsigned choose(std::uint64_t from, std::uint32_t salt, std::uint32_t reach) const {
    const std::uint32_t n = simt::popc(from);
    return nth_set_bit(from, (salt & 0xffff) * (n < reach ? n : reach) >> 16);
  }
  QUARRY_DEVICE std::uint32_t find_below(std::uint32_t t, std::uint32_t salt,
                                         std::uint32_t reach) const;
  QUARRY_DEVICE std::uint32_t try_in_a_word(std::uint32_t n, std::uint32_t salt,
                                            std::uint32_t reach) const;
  /// Where n set bits of v lie side by side: all places where such a run starts.
  QUARRY_DEVICE static std::uint64_t runs(std::uint64_t v, std::uint32_t n) {
    QUARRY_ROLLED
    for (std::uint32_t have = 1; have < n;) {
      const std::uint32_t more = have < n - have ? have : n - have;
      v &= v >> more;
      have += more;
    }
    return v;
  }
  /// Where n set bits lie side by side, n a power of two: all places that are multiples of it.
  QUARRY_DEVICE static std::uint64_t aligned_runs(std::uint64_t v, std::uint32_t n) {
    std::uint64_t multiples = 1;
    QUARRY_ROLLED
    for (std::uint32_t have = 1; have < n; have *= 2) v &= v >> have;
    QUARRY_ROLLED
    for (std::uint32_t have = n; have < 64; have *= 2) multiples |= multiples << have;
    return v & multiples;
  }
  /// The bits of word w that belong to the run.
  QUARRY_DEVICE static std::uint64_t part_of_run(std::uint32_t w, std::uint32_t first,
                                                 std::uint32_t n) {
    const std::uint64_t begin = std::uint64_t{w} * 64;
    const std::uint64_t from = first > begin ? first - begin : 0;
    const std::uint64_t to = std::uint64_t{first} + n - begin;
    return (to >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1) & ~std::uint64_t{0}
                                                                               << from;
  }

  std::uint32_t size_;
  std::uint64_t* words_;
};

// ---- bodies ------------------------------------------------------------------------------------------

QUARRY_DEVICE inline void index_set::fill(std::uint64_t lane, std::uint64_t lanes) const {
  const auto level = [&](std::uint32_t bits, auto where) {
    for (std::uint64_t w = lane; w < parts(bits); w += lanes) {
      const std::uint64_t left = bits - w * 64;
      words_[where(static_cast<std::uint32_t>(w))] =
          left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    }
  };
  level(size_, [this](std::uint32_t w) { return place(w); });
  level(words(), [this](std::uint32_t w) { return places() + w; });
  level(hint_words(), [this](std::uint32_t w) { return places() + hint_words() + w; });
}

QUARRY_DEVICE inline void index_set::put_run(std::uint32_t first, std::uint32_t n) const {
  QUARRY_ROLLED
  while (n != 0) {
    const std::uint32_t place = first % 64;
    const std::uint32_t here = n < 64 - place ? n : 64 - place;
    put_bits(first / 64, ~std::uint64_t{0} >> (64 - here) << place);
    first += here;
    n -= here;
  }
}

QUARRY_DEVICE inline void index_set::move_to(const index_set& other) const {
  QUARRY_ROLLED
  for (std::uint32_t tries = 0; tries < 2 * words(); ++tries) {
    const std::uint32_t w = find(0, 1);
    if (w == none) return;
    const std::uint64_t moved = word(w).exchange(0, simt::acquire);
    rare<&index_set::clear_hint>(w);
    simt::out_of_line<&index_set::put_bits>(other, w, moved);
  }
}

QUARRY_DEVICE inline std::uint32_t index_set::find(std::uint32_t salt, std::uint32_t reach) const {
  std::uint32_t w = none;
  QUARRY_ROLLED
  for (std::uint32_t t = 0; w == none && t < parts(hint_words()); ++t)
    w = rare<&index_set::find_below>(t, salt, reach);
  return w;
}

/// One that word t of the top knows of.
QUARRY_DEVICE inline std::uint32_t index_set::find_below(std::uint32_t t, std::uint32_t salt,
                                                         std::uint32_t reach) const {
  QUARRY_ROLLED
  for (std::uint64_t groups = top(t).load(simt::relaxed); groups != 0;) {
    const unsigned group = rare<&index_set::choose>(groups, salt >> 16, (reach + 63) / 64);
    const std::uint64_t full = some(t * 64 + group).load(simt::relaxed);
    if (full != 0) return (t * 64 + group) * 64 + rare<&index_set::choose>(full, salt, reach);
    groups &= ~(std::uint64_t{1} << group);
  }
  return none;
}

QUARRY_DEVICE inline std::uint32_t index_set::take_in_a_word(std::uint32_t n, std::uint32_t salt,
                                                             std::uint32_t reach) const {
  unsigned losses = 0;
  QUARRY_ROLLED
  for (std::uint32_t hints = words(); losses < patience && hints != 0;) {
    const std::uint32_t first = rare<&index_set::try_in_a_word>(n, salt, reach);
    if (first != lost && first != misled) return first;
    salt = simt::scramble(salt + 1);
    if (first == misled) {
      --hints;
    } else {
      reach = reach < 64 || losses >= 8 ? reach * 2 : reach;
      ++losses;
    }
  }
  return lost;
}

QUARRY_DEVICE inline std::uint32_t index_set::try_in_a_word(std::uint32_t n, std::uint32_t salt,
                                                            std::uint32_t reach) const {
  const std::uint32_t w = find(salt, reach);
  if (w == none) return none;
  const std::uint64_t seen = word(w).load(simt::relaxed);
  if (seen == 0) {
    rare<&index_set::clear_hint>(w);
    return misled;
  }
  const std::uint64_t starts = runs(seen, n);
  if (starts == 0) return lost;
  const unsigned place = n == 1 ? rare<&index_set::choose>(starts, simt::scramble(salt + 1), 64u)
                                : simt::lowest_bit(starts);
  return take_all_in(w, place, n) ? w * 64 + place : lost;
}

QUARRY_DEVICE inline std::uint32_t index_set::take_lowest() const {
  QUARRY_ROLLED
  for (std::uint32_t w = 0; w < words();) {
    const std::uint64_t seen = word(w).load(simt::relaxed);
    if (seen == 0) {
      ++w;
    } else if (rare<&index_set::take_bits>(w, seen & (0 - seen)) != 0) {
      return w * 64 + simt::lowest_bit(seen);
    }
  }
  return none;
}

QUARRY_DEVICE inline bool index_set::take_all(std::uint32_t first, std::uint32_t n) const {
  QUARRY_ROLLED
  for (std::uint32_t w = first / 64; w <= (first + n - 1) / 64; ++w) {
    const std::uint64_t wanted = part_of_run(w, first, n);
    const std::uint64_t got = rare<&index_set::take_bits>(w, wanted);
    if (got == wanted) continue;
    rare<&index_set::put_bits>(w, got);
    if (w * 64 > first) put_run(first, w * 64 - first);
    return false;
  }
  return true;
}

QUARRY_DEVICE inline std::uint32_t index_set::take_some_in(std::uint32_t w, std::uint32_t& n,
                                                           std::uint32_t least, std::uint32_t near,
                                                           std::uint32_t plenty) const {
  const auto here = word(w);
  const std::uint64_t seen = plenty == 0 ? ~std::uint64_t{0} : here.load(simt::relaxed);
  if (simt::popc(seen) < plenty) return none;
  // A power of two, at a multiple of it: what is given back fits together again.
  std::uint32_t length = 2u << log2_floor(n);
  std::uint64_t starts = 0;
  QUARRY_ROLLED
  while (starts == 0 && length / 2 >= least) starts = aligned_runs(seen, length /= 2);
  if (starts == 0) return none;
  const std::uint64_t ahead = starts & ~std::uint64_t{0} << near % 64;
  const unsigned place = simt::lowest_bit(ahead != 0 ? ahead : starts);
  const std::uint64_t run = ~std::uint64_t{0} >> (64 - length) << place;
  const std::uint64_t was = here.fetch_and(~run, simt::by_value);
  n = length;
  if ((was & run) == run) {
    if (was == run) clear_hint(w);
    return w * 64 + place;
  }
  if ((was & run) != 0 && here.fetch_or(was & run, simt::release) == 0) set_hint(w);
  return none;
}

QUARRY_DEVICE inline std::uint32_t index_set::find_run(std::uint32_t n, std::uint32_t from) const {
  QUARRY_ROLLED
  for (std::uint32_t at = from; n - 1 < size_ && at < size_;) {
    const std::uint64_t rest = word(at / 64).load(simt::relaxed) >> at % 64;
    const std::uint32_t length = 64 - at % 64;  // of rest
    if ((rest & 1) == 0) {
      at += rest == 0 ? length : simt::lowest_bit(rest);
      from = at;
    } else {
      const std::uint32_t ones = ~rest == 0 ? 64 : simt::lowest_bit(~rest);
      at += ones < length ? ones : length;
      if (at - from >= n) return from;
    }
  }
  return none;
}

}  // namespace quarry
