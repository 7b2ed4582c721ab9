// SPDX-License-Identifier: Apache-2.0
// Claims and releases under many schedules. A table of owners is the oracle. A mutant that does not
// check the result of fetch_and shows that the oracle detects errors.
#include <quarry/concurrent/bitmap.hpp>
#include <quarry/simt/explore.hpp>
#include <quarry/simt/simt.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace bitmap_explore_test {
namespace {

using quarry::bit_number;
using quarry::bitmap;
using quarry::word_number;
namespace simt = quarry::simt;

using Word = std::uint32_t;
constexpr unsigned width = bitmap<Word>::bits_per_word;

/// The owner of each bit, as the lanes report it, and the first violation. The explorer runs one
/// lane at a time.
class owner_list {
 public:
  void clear() { *this = {}; }
  void gain(word_number at, Word bits) {
    simt::host_section hidden;
    if ((owned_[at.value()] & bits) != 0) report("a bit belongs to two lanes");
    owned_[at.value()] |= bits;
  }
  void lose(word_number at, Word bits) {
    simt::host_section hidden;
    owned_[at.value()] &= ~bits;
  }
  void expect(bool right, const char* otherwise) {
    simt::host_section hidden;
    if (!right) report(otherwise);
  }
  Word owned(word_number at) const { return owned_[at.value()]; }
  std::string violation() const { return violation_; }

 private:
  void report(const char* what) {
    if (violation_[0] == '\0') violation_ = what;
  }

  std::array<Word, 4> owned_{};
  const char* violation_ = "";
};

/// A mutant: it loads, selects and clears bits, and does not check which of them it has claimed.
class trusting_bitmap : public bitmap<Word> {
 public:
  trusting_bitmap(Word* words, std::uint64_t bits) : bitmap(words, bits), words_(words) {}
  Word claim(word_number at, unsigned k, unsigned = 0) const {
    const simt::atomic_ref<Word> word(words_[at.value()]);
    const Word chosen = quarry::lowest_set_bits(word.load(simt::acquire), k);
    word.bit_and(~chosen, simt::acq_rel);
    return chosen;
  }

 private:
  Word* words_;
};

/// Each lane claims up to three bits of a word, or one bit of any word, and releases them, for a
/// few rounds.
template <class Map>
struct claim_and_release {
  Map map;
  owner_list* owners;
  std::uint64_t seed;

  void operator()() const {
    simt::lane_random random(seed * 64 + simt::global_thread());
    for (int round = 0; round < 3; ++round) {
      const word_number at(random.below(map.words()));
      const unsigned k = 1 + random.below(3);
      const unsigned turn = random.below(2) == 0 ? 0 : random.next();
      const Word got = map.claim(at, k, turn);
      owners->expect(simt::popc(got) <= k, "more bits than asked for");
      owners->gain(at, got);
      bit_number one = map.none();
      if (random.below(2) == 0) one = map.claim_one(random.next());
      if (one != map.none()) {
        owners->expect(one.value() < map.size(), "a bit past the end");
        owners->gain(map.word_of(one), map.mask_of(one));
      }
      owners->lose(at, got);
      owners->expect((map.release(at, got) & got) == 0, "a bit of ours was free");
      if (one == map.none()) continue;
      owners->lose(map.word_of(one), map.mask_of(one));
      owners->expect((map.release(one) & map.mask_of(one)) == 0, "a bit of ours was free");
    }
  }
};

template <class Map>
std::string explore_claims(std::uint64_t schedules, simt::strategy how, std::uint32_t lanes,
                           std::uint64_t& at_seed) {
  constexpr std::uint64_t bits = width + 3;
  simt::explorer explorer;
  owner_list owners;
  std::array<Word, 2> words{};
  const Map map(words.data(), bits);
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    at_seed = seed;
    owners.clear();
    words = {0b1011u << 20, 0b111u};  // few bits, so that lanes contend
    const auto result =
        explorer.run({.seed = seed, .how = how, .expected_steps = lanes * 12, .step_limit = 10'000},
                     {1, lanes}, claim_and_release<Map>{map, &owners, seed});
    if (!result.ok()) return result.failure;
    if (const std::string wrong = owners.violation(); !wrong.empty()) return wrong;
    if (words != std::array<Word, 2>{0b1011u << 20, 0b111u}) return "bits were lost, or made";
  }
  return {};
}

TEST(BitmapExplored, GivesNoBitToTwoLanesAndLosesNone) {
  std::uint64_t seed = 0;
  EXPECT_EQ(explore_claims<bitmap<Word>>(100'000, simt::strategy::random, 3, seed), "")
      << "seed " << seed;
  EXPECT_EQ(explore_claims<bitmap<Word>>(20'000, simt::strategy::random, 6, seed), "")
      << "seed " << seed;
}

TEST(BitmapExplored, GivesNoBitToTwoLanesUnderPrioritySchedules) {
  std::uint64_t seed = 0;
  EXPECT_EQ(explore_claims<bitmap<Word>>(20'000, simt::strategy::pct, 4, seed), "")
      << "seed " << seed;
}

TEST(BitmapExplored, DetectsAMutantThatTrustsItsFirstLoad) {
  std::uint64_t seed = 0;
  EXPECT_EQ(explore_claims<trusting_bitmap>(1000, simt::strategy::random, 3, seed),
            "a bit belongs to two lanes");
}

/// No lane releases bits, and there are enough for all. Each lane gets its bits within one load and
/// one round per bit.
struct enough_for_all {
  bitmap<Word> map;
  owner_list* owners;
  std::uint64_t seed;
  unsigned each;

  void operator()() const {
    simt::lane_random random(seed * 64 + simt::global_thread());
    const std::uint64_t before = simt::round_trips();
    const Word got = map.claim(word_number{0}, each, random.below(2) == 0 ? 0 : random.next());
    owners->expect(simt::round_trips() - before <= 1 + each * simt::block_size(),
                   "more rounds than bits");
    owners->gain(word_number{0}, got);
    owners->expect(simt::popc(got) == each, "a lane got fewer bits than it asked for");
  }
};

TEST(BitmapExplored, ServesAllLanesIfThereAreEnoughBits) {
  simt::explorer explorer;
  owner_list owners;
  for (std::uint64_t seed = 0; seed < 50'000; ++seed) {
    const auto lanes = static_cast<std::uint32_t>(2 + seed % 4);
    const auto each = static_cast<unsigned>(1 + seed % 3);
    const Word all = quarry::lowest_set_bits(Word{0xb6db6db6u}, lanes * each);
    Word word = all;
    owners.clear();
    const auto result = explorer.run({.seed = seed, .step_limit = 10'000}, {1, lanes},
                                     enough_for_all{{&word, width}, &owners, seed, each});
    ASSERT_EQ(result.failure + owners.violation(), "") << "seed " << seed;
    ASSERT_EQ(word, 0u);
    ASSERT_EQ(owners.owned(word_number{0}), all);
  }
}

/// Other lanes claim and release bits all the time. A claim ends after one load and one round per
/// bit.
struct among_busy_lanes {
  static constexpr unsigned bits = 3;
  bitmap<Word> map;
  owner_list* owners;
  std::uint64_t seed;

  void operator()() const {
    if (simt::global_thread() == 0) {
      const std::uint64_t before = simt::round_trips();
      map.claim(word_number{0}, bits);
      owners->expect(simt::round_trips() - before <= 1 + bits, "more rounds than bits");
      return;
    }
    simt::lane_random random(seed * 64 + simt::global_thread());
    for (int i = 0; i < 12; ++i)
      map.release(word_number{0}, map.claim(word_number{0}, 1, random.next()));
  }
};

TEST(BitmapExplored, EndsAClaimUnderContention) {
  simt::explorer explorer;
  owner_list owners;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Word word = (1u << among_busy_lanes::bits) - 1;
    owners.clear();
    const auto result =
        explorer.run({.seed = seed, .step_limit = 10'000}, {1, 4},
                     among_busy_lanes{{&word, among_busy_lanes::bits}, &owners, seed});
    ASSERT_EQ(result.failure + owners.violation(), "") << "seed " << seed;
  }
}

struct one_for_each {
  bitmap<Word> map;
  owner_list* owners;
  std::uint64_t seed;

  void operator()() const {
    simt::lane_random random(seed * 64 + simt::global_thread());
    const bit_number one = map.claim_one(random.next());
    owners->expect(one != map.none(), "a lane got nothing");
    if (one != map.none()) owners->gain(map.word_of(one), map.mask_of(one));
  }
};

TEST(BitmapExplored, FindsABitForEachLaneInOnePass) {
  simt::explorer explorer;
  owner_list owners;
  for (std::uint64_t seed = 0; seed < 50'000; ++seed) {
    std::array<Word, 3> words{0, 0b10101, 0b1};
    owners.clear();
    const auto result = explorer.run({.seed = seed, .step_limit = 10'000}, {2, 2},
                                     one_for_each{{words.data(), 2 * width + 1}, &owners, seed});
    ASSERT_EQ(result.failure + owners.violation(), "") << "seed " << seed;
  }
}

// The cost of calls without contention.
struct empty_pass {
  bitmap<Word> map;
  void operator()() const {
    if (map.claim_one(0x80000000u) != map.none()) simt::fail("nothing was free");
  }
};
struct one_claim {
  bitmap<Word> map;
  void operator()() const { map.release(word_number{1}, map.claim(word_number{1}, 5)); }
};

TEST(BitmapCosts, OneLoadPerWordOfABitmapWithoutFreeBits) {
  simt::explorer explorer;
  std::array<Word, 4> words{};
  EXPECT_TRUE(explorer.run({}, {1, 1}, empty_pass{{words.data(), 4 * width}}).ok());
  EXPECT_EQ(explorer.counts().loads, 4u);
  EXPECT_EQ(explorer.counts().atomics, 0u);
}

TEST(BitmapCosts, OneLoadAndOneAtomicForSeveralBits) {
  simt::explorer explorer;
  std::array<Word, 2> words{0, ~0u};
  EXPECT_TRUE(explorer.run({}, {1, 1}, one_claim{{words.data(), 2 * width}}).ok());
  EXPECT_EQ(explorer.counts().loads, 1u);
  EXPECT_EQ(explorer.counts().atomics, 2u) << "one to claim, one to release";
}

}  // namespace
}  // namespace bitmap_explore_test
