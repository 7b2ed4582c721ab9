// SPDX-License-Identifier: Apache-2.0
#include "support/on_backend.hpp"

#include <quarry/concurrent/bitmap.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace bitmap_test {
namespace {

using quarry::bit_number;
using quarry::bitmap;
using quarry::nth_set_bit;
using quarry::word_number;
using quarry::testing::shared_array;
namespace simt = quarry::simt;

template <class Word>
constexpr unsigned naive_nth(Word w, unsigned n) {
  for (unsigned at = 0;; ++at)
    if ((w >> at & 1) != 0 && n-- == 0) return at;
}

static_assert(nth_set_bit(0b1011'0000u, 0) == 4 && nth_set_bit(0b1011'0000u, 2) == 7);
static_assert(nth_set_bit(~0u, 31) == 31 && nth_set_bit(~std::uint64_t{0}, 63) == 63);
static_assert([] {
  for (std::uint32_t w = 1; w < 512; ++w)
    for (unsigned n = 0; n < simt::popc(w); ++n)
      if (nth_set_bit(w, n) != naive_nth(w, n)) return false;
  return true;
}());

template <class T>
class Bitmap : public ::testing::Test {
 public:
  static constexpr unsigned width = sizeof(T) * 8;
};
using Words = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Bitmap, Words);

TYPED_TEST(Bitmap, FindsTheNthSetBitAsALoopDoes) {
  using Word = TypeParam;
  std::uint64_t state = 7;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    Word w = static_cast<Word>(state ^ state >> 29);
    if (i % 3 == 1) w &= static_cast<Word>(state * 0x9e3779b97f4a7c15u);  // sparse
    if (i % 3 == 2) w |= static_cast<Word>(state * 0x9e3779b97f4a7c15u);  // dense
    Word lowest = 0;
    for (unsigned n = 0; n < simt::popc(w); ++n) {
      ASSERT_EQ(nth_set_bit(w, n), naive_nth(w, n)) << w << " " << n;
      ASSERT_EQ(quarry::lowest_set_bits(w, n), lowest) << w << " " << n;
      lowest |= Word{1} << naive_nth(w, n);
    }
    ASSERT_EQ(quarry::lowest_set_bits(w, simt::popc(w)), w);
    ASSERT_EQ(quarry::lowest_set_bits(w, 64), w);
  }
  EXPECT_EQ(quarry::lowest_set_bits(Word{0}, 1), 0u);
}

TYPED_TEST(Bitmap, HasNoFreeBitsBeforeItIsInitialised) {
  TypeParam words[3] = {};
  const bitmap<TypeParam> map(words, 3 * this->width);
  EXPECT_EQ(map.claim(word_number{0}, 4), 0u);
  EXPECT_EQ(map.claim_one(0x12345678u), map.none());
}

TYPED_TEST(Bitmap, HasNoBitsPastItsEnd) {
  using Word = TypeParam;
  for (const std::uint64_t bits :
       {1u, 5u, this->width - 1, this->width, this->width + 1, 3 * this->width}) {
    std::vector<Word> words(4, static_cast<Word>(~Word{0}));
    const bitmap<Word> map(words.data(), bits);
    EXPECT_EQ(map.words(), (bits + this->width - 1) / this->width);
    for (std::uint64_t lane = 0; lane < 3; ++lane) map.initialise(lane, 3);
    EXPECT_EQ(map.count(), bits);
    map.initialise(0, 1, false);
    EXPECT_EQ(map.count(), 0u);
    EXPECT_EQ(words[3], static_cast<Word>(~Word{0})) << "memory after the words is not ours";
  }
}

TYPED_TEST(Bitmap, ClaimsUpToKBitsOfAWord) {
  using Word = TypeParam;
  Word words[2] = {};
  const bitmap<Word> map(words, this->width + 4);
  map.initialise(0, 1);
  EXPECT_EQ(map.claim(word_number{1}, 3), 0b0111u);
  EXPECT_EQ(map.claim(word_number{1}, 3), 0b1000u) << "as many as there are";
  EXPECT_EQ(map.claim(word_number{1}, 3), 0u);
  EXPECT_EQ(map.claim(word_number{0}, 0), 0u);
  EXPECT_EQ(map.claim(word_number{0}, 64), static_cast<Word>(~Word{0}));
  EXPECT_EQ(map.count(), 0u);
}

TYPED_TEST(Bitmap, SearchesFromTheStartBitAndWrapsAround) {
  using Word = TypeParam;
  Word word = 0;
  const bitmap<Word> map(&word, this->width);
  map.initialise(0, 1);
  const Word top = Word{1} << (this->width - 1);
  EXPECT_EQ(map.claim(word_number{0}, 1, 5), Word{1} << 5);
  EXPECT_EQ(map.claim(word_number{0}, 2, 5), Word{0b11} << 6);
  EXPECT_EQ(map.claim(word_number{0}, 3, this->width - 1), (top | 0b11));
  EXPECT_EQ(map.claim(word_number{0}, 1, this->width + 9), Word{1} << 9) << "turns wrap";
}

TYPED_TEST(Bitmap, ClaimsGivenBitsInOneStep) {
  using Word = TypeParam;
  Word word = 0b1010'1010;
  const bitmap<Word> map(&word, this->width);
  EXPECT_EQ(map.claim_these(word_number{0}, 0b1111), 0b1010u);
  EXPECT_EQ(word, 0b1010'0000u);
  EXPECT_EQ(map.claim_these(word_number{0}, 0b1111), 0u);
}

TYPED_TEST(Bitmap, ReturnsTheWordBeforeARelease) {
  using Word = TypeParam;
  Word words[2] = {};
  const bitmap<Word> map(words, 2 * this->width);
  EXPECT_EQ(map.release(word_number{1}, 0b0110), 0u);
  EXPECT_EQ(map.release(word_number{1}, 0b1000, simt::acq_rel), 0b0110u);
  const bit_number b = map.bit_at(word_number{1}, 2);
  EXPECT_EQ(map.release(b) & map.mask_of(b), 0b0100u) << "a bit that was free: released twice";
  EXPECT_EQ(map.word_of(b), word_number{1});
  EXPECT_EQ(map.load(word_number{1}), 0b1110u);
}

TYPED_TEST(Bitmap, ClaimsEveryBitOnceAndThenNone) {
  using Word = TypeParam;
  std::vector<Word> words(5);
  const bitmap<Word> map(words.data(), 5 * this->width - 3);
  map.initialise(0, 1);
  std::set<std::uint64_t> seen;
  simt::lane_random random(3);
  for (std::uint64_t i = 0; i < map.size(); ++i) {
    const bit_number b = map.claim_one(random.next());
    ASSERT_LT(b.value(), map.size());
    ASSERT_TRUE(seen.insert(b.value()).second);
  }
  EXPECT_EQ(map.claim_one(random.next()), map.none());
  for (const std::uint64_t b : seen) map.release(bit_number{b});
  EXPECT_EQ(map.count(), map.size());
}

TYPED_TEST(Bitmap, StartsAtAWordThatTheHashSelects) {
  using Word = TypeParam;
  std::vector<Word> words(8);
  const bitmap<Word> map(words.data(), 8 * this->width);
  map.initialise(0, 1);
  std::set<std::uint32_t> starts;
  for (std::uint32_t i = 0; i < 8; ++i) starts.insert(map.word_of(map.claim_one(i << 29)).value());
  EXPECT_EQ(starts.size(), 8u);
}

struct ranks_in_a_lane {
  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const std::uint64_t w = (lane + 1) * 0x9e3779b97f4a7c15u;
    const auto narrow = static_cast<std::uint32_t>(w);
    bool right = true;
    unsigned n = 0;
    for (std::uint64_t rest = w; rest != 0; rest &= rest - 1)
      right = right && nth_set_bit(w, n++) == simt::lowest_bit(rest);
    n = 0;
    for (std::uint32_t rest = narrow; rest != 0; rest &= rest - 1)
      right = right && nth_set_bit(narrow, n++) == simt::lowest_bit(rest);
    return right;
  }
};

TEST(BitmapInDeviceCode, FindsTheNthSetBit) {
  EXPECT_EQ(quarry::testing::lanes_that_fail({8, 128}, ranks_in_a_lane{}), 0u);
}

// Lanes claim slots, write to them, check their contents and release them. The contents are plain
// memory: only claim and release order the accesses of two owners.
struct owners {
  bitmap<std::uint32_t> map;
  std::uint32_t* contents;  // {id, ~id} per slot
  std::uint32_t* served;
  std::uint32_t rounds;

  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    simt::lane_random random(lane + 1);
    const auto name = static_cast<std::uint32_t>(lane + 1);
    bool intact = true;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const word_number at(random.below(map.words()));
      const std::uint32_t got = map.claim(at, 1 + random.below(3), random.next());
      for (std::uint32_t rest = got; rest != 0; rest &= rest - 1) {
        std::uint32_t* slot = contents + 2 * map.bit_at(at, simt::lowest_bit(rest)).value();
        intact = intact && (slot[0] ^ slot[1]) == ~std::uint32_t{0};
        slot[0] = name;
        slot[1] = ~name;
      }
      if (const bit_number one = map.claim_one(random.next()); one != map.none()) {
        std::uint32_t* slot = contents + 2 * one.value();
        intact = intact && (slot[0] ^ slot[1]) == ~std::uint32_t{0};
        slot[0] = name;
        slot[1] = ~name;
        simt::atomic_ref<std::uint32_t>(*served).add(1, simt::relaxed);
        intact = intact && slot[0] == name && slot[1] == ~name;
        intact = intact && (map.release(one) & map.mask_of(one)) == 0;
      }
      for (std::uint32_t rest = got; rest != 0; rest &= rest - 1) {
        const std::uint32_t* slot = contents + 2 * map.bit_at(at, simt::lowest_bit(rest)).value();
        intact = intact && slot[0] == name && slot[1] == ~name;
      }
      if (got != 0) intact = intact && (map.release(at, got) & got) == 0;
    }
    return intact;
  }
};

TEST(BitmapInDeviceCode, GivesASlotToOneOwnerAtATime) {
  constexpr std::uint64_t slots = 100;
  shared_array<std::uint32_t> words(bitmap<std::uint32_t>::words_for(slots));
  std::vector<std::uint32_t> fresh(words.size(), ~0u);
  fresh.back() = (1u << slots % 32) - 1;
  words.from_host(fresh);
  std::vector<std::uint32_t> blank(2 * slots, 0);
  for (std::size_t i = 1; i < blank.size(); i += 2) blank[i] = ~0u;
  shared_array<std::uint32_t> contents(2 * slots);
  contents.from_host(blank);
  shared_array<std::uint32_t> served(1);

  const owners kernel{{words.data(), slots}, contents.data(), served.data(), 50};
  EXPECT_EQ(quarry::testing::lanes_that_fail({8, 96}, kernel), 0u);
  EXPECT_EQ(words.to_host(), fresh) << "every slot came back";
  EXPECT_GT(served.to_host()[0], 0u);
}

// There are as many lanes as bits. Each lane claims one bit, with any hash.
struct every_lane_claims {
  bitmap<std::uint64_t> map;
  std::uint32_t* taken;
  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const bit_number b = map.claim_one(static_cast<std::uint32_t>(lane * 0x9e3779b9u));
    if (b == map.none()) return false;
    return simt::atomic_ref<std::uint32_t>(taken[b.value()]).fetch_add(1, simt::relaxed) == 0;
  }
};

TEST(BitmapInDeviceCode, ServesAsManyLanesAsItHasBits) {
  constexpr std::uint64_t bits = 8 * 128;
  shared_array<std::uint64_t> words(bitmap<std::uint64_t>::words_for(bits));
  words.from_host(std::vector<std::uint64_t>(words.size(), ~std::uint64_t{0}));
  shared_array<std::uint32_t> taken(bits);
  EXPECT_EQ(quarry::testing::lanes_that_fail({8, 128},
                                             every_lane_claims{{words.data(), bits}, taken.data()}),
            0u);
  EXPECT_EQ(taken.to_host(), std::vector<std::uint32_t>(bits, 1));
}

}  // namespace
}  // namespace bitmap_test
