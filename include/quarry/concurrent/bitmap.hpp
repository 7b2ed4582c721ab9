// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bitmap: which slots of a range are free; one bit a slot, kept outside the range.
///
///   slots   |  0 |  1 |  2 | ... | 31 | 32 | ...
///   words   [ b0   b1   b2   ...  b31 ][ b32 ...        a SET bit is a FREE slot
///
/// Why set means free: the bits a lane looks for are the ones that count, rank and find-first see,
/// with no complement; a word that is 0 has nothing to give, which is one compare; zeroed metadata
/// hands out nothing, so memory not yet initialised is not given away, a fresh segment whose slots
/// go out by counting needs no store at all, and the bits past the end of the last word need no
/// guard.
///
/// claim    read a word, choose up to k set bits, clear them with one fetch_and. The word that
///          comes back tells which of them were still set: those are ours, the others were never
///          touched by us (clearing a clear bit changes nothing). Where some were lost, try others
///          of the bits seen at first.
/// release  sets bits with one fetch_or, and returns the word before: the caller sees a double free
///          (a bit already set), and it alone sees the word become "half free" or "wholly free".
///
/// Why not compare-and-swap: it fails when any bit of the word changed; fetch_and fails only for
/// the bits it lost, so k lanes that work on one word do not undo each other.
///
/// Invariant: a bit is set, or exactly one lane owns its slot. Only fetch_and clears and only the
/// owner sets; a bit changes hands where one fetch_and turns it from 1 to 0.
/// Ordering: a claim acquires, a release releases: what the old owner wrote is before what the new
/// one does. Every change of a word is a read-modify-write, so a release is seen through all later
/// ones. The first look is relaxed: it only proposes.
/// Progress: the set of bits seen and not yet tried shrinks in each round, so claim ends after at
/// most as many rounds as the word has bits, in any schedule; a round that gains nothing lost its
/// bits to others. claim_one makes one pass over the words.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>
#include <quarry/core/strong.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/bits.hpp>

#include <atomic>
#include <cstdint>

namespace quarry {

/// Place of the n-th set bit, counted from 0. Requires n < popc(w).
/// Halves the word by its population count: 5 steps for 32 bits, 6 for 64, no loop over bits.
template <unsigned_word Word>
QUARRY_DEVICE constexpr unsigned nth_set_bit(Word w, unsigned n) {
  unsigned at = 0;
  for (unsigned half = sizeof(Word) * 4; half != 0; half /= 2) {
    const unsigned low = simt::popc(static_cast<Word>(w & ((Word{1} << half) - 1)));
    if (n >= low) {
      n -= low;
      w >>= half;
      at += half;
    }
  }
  return at;
}

/// The k lowest set bits of w; all of them where there are no more than k.
template <unsigned_word Word>
QUARRY_DEVICE constexpr Word lowest_set_bits(Word w, unsigned k) {
  if (k == 1) return w & (~w + 1);
  if (k >= simt::popc(w)) return w;
  return w & ((Word{1} << nth_set_bit(w, k)) - 1);
}

using word_number = strong<struct word_number_tag, std::uint32_t>;
using bit_number = strong<struct bit_number_tag, std::uint64_t>;

template <unsigned_word Word = std::uint32_t>
class bitmap {
 public:
  static constexpr unsigned bits_per_word = sizeof(Word) * 8;

  bitmap() = default;
  /// A view; the words stay the caller's.
  QUARRY_DEVICE bitmap(Word* words, std::uint64_t bits) : words_(words), bits_(bits) {}

  /// How many words hold so many bits. Requires: fewer than 2^32 of them.
  QUARRY_DEVICE static constexpr std::uint32_t words_for(std::uint64_t bits) {
    return static_cast<std::uint32_t>(ceil_div(bits, bits_per_word));
  }
  QUARRY_DEVICE std::uint64_t size() const { return bits_; }
  QUARRY_DEVICE std::uint32_t words() const { return words_for(bits_); }

  /// Sets every bit, or none: the share of one lane out of `lanes`. Nobody else may use the map
  /// yet.
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes, bool free = true) const;

  /// Takes up to k free bits of one word and returns them; 0 where none was free. The bits are
  /// looked for from place `turn` upwards and around, so that lanes with different turns seldom
  /// meet.
  QUARRY_DEVICE Word claim(word_number at, unsigned k, unsigned turn = 0) const;

  /// Takes those bits of `wanted` that are free and returns them: one atomic.
  QUARRY_DEVICE Word claim_these(word_number at, Word wanted) const {
    return entry(at).fetch_and(static_cast<Word>(~wanted), simt::acquire) & wanted;
  }

  /// Takes one free bit anywhere; none() where one pass over all words found nothing. The pass
  /// begins at a word chosen by the hash. A bit released behind the pass is missed: none() means
  /// that each word was found empty at some moment of the call.
  QUARRY_DEVICE bit_number claim_one(std::uint32_t hash) const;

  /// Gives bits back and returns the word as it was; `was & bits` must be 0, else they were free.
  /// A caller that acts on memory other lanes released (the word became wholly free) passes
  /// acq_rel.
  QUARRY_DEVICE Word release(word_number at, Word bits,
                             std::memory_order order = simt::release) const {
    return entry(at).fetch_or(bits, order);
  }
  QUARRY_DEVICE Word release(bit_number b) const { return release(word_of(b), mask_of(b)); }

  QUARRY_DEVICE Word load(word_number at) const { return entry(at).load(simt::relaxed); }

  /// Set bits. Exact when nobody changes them.
  QUARRY_DEVICE std::uint64_t count() const;

  QUARRY_DEVICE static constexpr bit_number none() { return bit_number(~std::uint64_t{0}); }
  QUARRY_DEVICE static constexpr word_number word_of(bit_number b) {
    return word_number(static_cast<std::uint32_t>(b.value() / bits_per_word));
  }
  QUARRY_DEVICE static constexpr Word mask_of(bit_number b) {
    return Word{1} << (b.value() % bits_per_word);
  }
  QUARRY_DEVICE static constexpr bit_number bit_at(word_number at, unsigned place) {
    return bit_number(std::uint64_t{at.value()} * bits_per_word + place);
  }
  /// The bits that exist in a word: all, but for the last one.
  QUARRY_DEVICE Word present(word_number at) const {
    const std::uint64_t left = bits_ - bit_at(at, 0).value();
    return left >= bits_per_word ? static_cast<Word>(~Word{0}) : (Word{1} << left) - 1;
  }

 private:
  QUARRY_DEVICE simt::atomic_ref<Word> entry(word_number at) const {
    return simt::atomic_ref<Word>(words_[at.value()]);
  }
  QUARRY_DEVICE static constexpr Word rotate_down(Word w, unsigned turn) {
    return w >> turn | w << (-turn & (bits_per_word - 1));
  }

  Word* words_ = nullptr;
  std::uint64_t bits_ = 0;
};

template <unsigned_word Word>
QUARRY_DEVICE Word bitmap<Word>::claim(word_number at, unsigned k, unsigned turn) const {
  turn &= bits_per_word - 1;
  const auto word = entry(at);
  Word seen = word.load(simt::relaxed);
  Word got = 0;
  while (seen != 0 && k != 0) {
    const Word chosen = rotate_down(lowest_set_bits(rotate_down(seen, turn), k),
                                    (bits_per_word - turn) & (bits_per_word - 1));
    const Word was = word.fetch_and(static_cast<Word>(~chosen), simt::acquire);
    got |= was & chosen;
    k -= simt::popc(static_cast<Word>(was & chosen));
    seen &= was & ~chosen;
  }
  return got;
}

template <unsigned_word Word>
QUARRY_DEVICE bit_number bitmap<Word>::claim_one(std::uint32_t hash) const {
  const std::uint32_t n = words();
  auto w = static_cast<std::uint32_t>(std::uint64_t{hash} * n >> 32);
  for (std::uint32_t visited = 0; visited < n; ++visited) {
    if (const Word got = claim(word_number(w), 1, hash); got != 0)
      return bit_at(word_number(w), simt::lowest_bit(got));
    w = w + 1 == n ? 0 : w + 1;
  }
  return none();
}

template <unsigned_word Word>
QUARRY_DEVICE void bitmap<Word>::initialise(std::uint64_t lane, std::uint64_t lanes,
                                            bool free) const {
  for (std::uint64_t w = lane; w < words(); w += lanes) {
    const word_number at(static_cast<std::uint32_t>(w));
    words_[w] = free ? present(at) : 0;
  }
}

template <unsigned_word Word>
QUARRY_DEVICE std::uint64_t bitmap<Word>::count() const {
  std::uint64_t total = 0;
  for (word_number at{0}; at.value() < words(); ++at) total += simt::popc(load(at));
  return total;
}

}  // namespace quarry
