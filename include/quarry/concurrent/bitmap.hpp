// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bitmap: the free slots of a range, one bit per slot, stored outside the range.
///
///   slots   |  0 |  1 |  2 | ... | 31 | 32 | ...
///   words   [ b0   b1   b2   ...  b31 ][ b32 ...        a SET bit is a FREE slot
///
/// A set bit means free for three reasons:
///   - Population count, rank and find-first apply to the word without a complement, and a word
///     without free slots is 0.
///   - Zeroed metadata has no free slots. Memory that is not initialised is therefore not
///     allocated, and an allocator that hands out the slots of a new segment by a counter stores
///     nothing.
///   - The bits past the end of the last word need no special case.
///
/// claim    loads a word, selects up to k set bits and clears them with one fetch_and. The result
///          tells which of these bits were still set: the caller owns these. The other bits are
///          unchanged, since clearing a clear bit has no effect. If the caller lost bits, it
///          continues with the bits of the first load that it has not tried.
/// release  sets bits with one fetch_or and returns the previous word. The caller detects a double
///          free (a bit that was set), and exactly one caller sees the word become half free or
///          entirely free.
///
/// fetch_and instead of compare-and-swap: a compare-and-swap fails if any bit of the word has
/// changed. fetch_and loses only the contended bits, so k lanes on one word do not make each other
/// retry.
///
/// Invariant: a bit is set, or exactly one lane owns its slot. Only fetch_and clears a bit, and
/// only the owner sets it. Ownership starts with the fetch_and that changes the bit from 1 to 0.
/// Memory ordering: claim acquires, release releases; the accesses of the previous owner happen
/// before those of the next owner. Every modification of a word is a read-modify-write operation,
/// so later modifications continue the release sequence. The first load of claim is relaxed: it is
/// a hint.
/// Progress: wait-free. The set of bits that claim has loaded and not tried shrinks in every round,
/// so the number of rounds is at most the number of bits of the word. claim_one makes one pass over
/// the words.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>
#include <quarry/core/strong.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/bits.hpp>

#include <atomic>
#include <cstdint>

namespace quarry {

/// Returns: the position of the n-th set bit, counted from 0. Requires n < popc(w).
/// Complexity: a binary search by population counts, 5 steps for 32 bits and 6 for 64.
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

/// Returns: the k lowest set bits of w, or all set bits if there are fewer.
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
  /// A view: the caller owns the words.
  QUARRY_DEVICE bitmap(Word* words, std::uint64_t bits) : words_(words), bits_(bits) {}

  /// Returns: the number of words for `bits` bits. Requires: the result is below 2^32.
  QUARRY_DEVICE static constexpr std::uint32_t words_for(std::uint64_t bits) {
    return static_cast<std::uint32_t>(ceil_div(bits, bits_per_word));
  }
  QUARRY_DEVICE std::uint64_t size() const { return bits_; }
  QUARRY_DEVICE std::uint32_t words() const { return words_for(bits_); }

  /// Effects: sets all bits (`free`) or clears them. Each of `lanes` lanes calls it with its own
  /// index and initialises a part. Requires: no other call is in progress.
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes, bool free = true) const;

  /// Effects: claims up to k free bits of one word. Returns: the claimed bits; 0 if none was free.
  /// The search starts at bit `start` and wraps around. Lanes with different starts seldom contend
  /// for the same bits.
  QUARRY_DEVICE Word claim(word_number at, unsigned k, unsigned start = 0) const;

  /// Effects: claims the bits of `wanted` that are free, with one atomic. Returns: the claimed
  /// bits.
  QUARRY_DEVICE Word claim_these(word_number at, Word wanted) const {
    return entry(at).fetch_and(static_cast<Word>(~wanted), simt::acquire) & wanted;
  }

  /// Effects: claims one free bit in one pass over all words, which starts at a word that `hash`
  /// selects. Returns: the bit; none() if each word was 0 when the pass loaded it. A bit that is
  /// released behind the pass is missed.
  QUARRY_DEVICE bit_number claim_one(std::uint32_t hash) const;

  /// Effects: sets `bits`. Returns: the previous word; a bit of `bits` in it indicates a double
  /// free. A caller that accesses memory which other lanes released, because the word has become
  /// entirely free, passes acq_rel.
  QUARRY_DEVICE Word release(word_number at, Word bits,
                             std::memory_order order = simt::release) const {
    return entry(at).fetch_or(bits, order);
  }
  QUARRY_DEVICE Word release(bit_number b) const { return release(word_of(b), mask_of(b)); }

  QUARRY_DEVICE Word load(word_number at) const { return entry(at).load(simt::relaxed); }

  /// Returns: the number of set bits. It is exact if the bitmap is quiescent.
  QUARRY_DEVICE std::uint64_t count() const;

  QUARRY_DEVICE static constexpr bit_number none() { return bit_number(~std::uint64_t{0}); }
  QUARRY_DEVICE static constexpr word_number word_of(bit_number b) {
    return word_number(static_cast<std::uint32_t>(b.value() / bits_per_word));
  }
  QUARRY_DEVICE static constexpr Word mask_of(bit_number b) {
    return Word{1} << (b.value() % bits_per_word);
  }
  QUARRY_DEVICE static constexpr bit_number bit_at(word_number at, unsigned position) {
    return bit_number(std::uint64_t{at.value()} * bits_per_word + position);
  }
  /// Returns: the bits of a word that belong to the bitmap. Only the last word may have others.
  QUARRY_DEVICE Word present(word_number at) const {
    const std::uint64_t left = bits_ - bit_at(at, 0).value();
    return left >= bits_per_word ? static_cast<Word>(~Word{0}) : (Word{1} << left) - 1;
  }

 private:
  QUARRY_DEVICE simt::atomic_ref<Word> entry(word_number at) const {
    return simt::atomic_ref<Word>(words_[at.value()]);
  }
  QUARRY_DEVICE static constexpr Word rotate_right(Word w, unsigned n) {
    return w >> n | w << (-n & (bits_per_word - 1));
  }

  Word* words_ = nullptr;
  std::uint64_t bits_ = 0;
};

template <unsigned_word Word>
QUARRY_DEVICE Word bitmap<Word>::claim(word_number at, unsigned k, unsigned start) const {
  start &= bits_per_word - 1;
  const auto word = entry(at);
  Word seen = word.load(simt::relaxed);
  Word got = 0;
  while (seen != 0 && k != 0) {
    const Word chosen = rotate_right(lowest_set_bits(rotate_right(seen, start), k),
                                     (bits_per_word - start) & (bits_per_word - 1));
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
