// SPDX-License-Identifier: Apache-2.0
// Rooms in processes made by fork, without MPI.
#include <quarry/cluster/shared_memory.hpp>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <random>

namespace quarry::cluster {
namespace {

constexpr std::uint64_t space_size = std::uint64_t{1} << 30;
constexpr std::size_t page = room::system_page;

address_space small_space() {
  return address_space::agree([](bool mine) { return mine; }, space_size);
}

/// What the processes of a test share: doors, a few words each, a barrier.
struct table {
  pthread_barrier_t barrier;
  std::array<room::door, 8> doors;
  std::array<std::array<std::uint64_t, 4096>, 8> words;
};

/// One process of a test.
class party {
 public:
  party(table& t, unsigned self, unsigned count, const address_space& space, bool fence)
      : table_(&t), self_(self), count_(count), space_(&space), memory(space, self, true, fence) {
    table_->doors[self] = memory.own_door();
    meet();
    require(memory.open(std::span(table_->doors).first(count)), "the doors open");
    meet();
  }

  unsigned self() const { return self_; }
  unsigned count() const { return count_; }
  void meet() { pthread_barrier_wait(&table_->barrier); }
  std::byte* at(std::size_t page_number) const { return space_->base() + page_number * page; }
  std::uint64_t& word(std::size_t page_number) const {
    return *reinterpret_cast<std::uint64_t*>(at(page_number));
  }
  packed_range pages(std::size_t first, std::size_t n) const { return {at(first), n * page}; }

  /// All call it. Whether memory moved; the others' is then what the words said.
  bool hand_over(unsigned giver, unsigned taker, std::span<const packed_range> ranges) {
    if (self_ == giver) put(memory.lend(ranges));
    meet();
    if (self_ == taker) put(memory.adopt(got(giver), ranges));
    meet();
    const bool moved = !got(taker).empty();
    if (self_ == giver && moved) memory.part(got(taker), ranges);
    meet();
    return moved;
  }
  static void require(bool truth, const char* what) {
    if (truth) return;
    std::fprintf(stderr, "process %d: not so: %s\n", static_cast<int>(::getpid()), what);
    std::_Exit(1);
  }

 private:
  void put(const std::vector<std::uint64_t>& words) {
    table_->words[self_][0] = words.size();
    std::copy(words.begin(), words.end(), table_->words[self_].begin() + 1);
  }
  std::span<const std::uint64_t> got(unsigned from) const {
    return std::span(table_->words[from]).subspan(1, table_->words[from][0]);
  }

  table* table_;
  unsigned self_, count_;
  const address_space* space_;

 public:
  room memory;
};

/// Runs the body in `count` processes and says how each ended: an exit code, or minus a signal.
std::vector<int> run_parties(unsigned count, bool fence, const std::function<void(party&)>& body) {
  auto* shared = static_cast<table*>(
      ::mmap(nullptr, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, count);
  std::vector<pid_t> children;
  for (unsigned i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      try {
        const address_space space = small_space();
        party p(*shared, i, count, space, fence);
        body(p);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        std::_Exit(2);
      }
      std::_Exit(0);
    }
    children.push_back(child);
  }
  std::vector<int> ends;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ends.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  ::munmap(shared, sizeof(table));
  return ends;
}
const std::vector<int> both_well{0, 0};

TEST(AddressSpace, IsTheSameRangeForAllWhereOneCanNotHaveTheFirst) {
  unsigned asked = 0;
  const address_space s = address_space::agree(
      [&](bool mine) {
        EXPECT_TRUE(mine);
        return ++asked > 2;  // somebody else fails twice
      },
      space_size);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.base()), address_space::candidates[2]);
  EXPECT_TRUE(s.contains(s.base() + s.size() - 1));
  EXPECT_FALSE(s.contains(s.base() + s.size()));
  EXPECT_FALSE(s.contains(s.base() - 1));
}

TEST(AddressSpace, GrowsSmallerWhenTheWantedSizeIsNowhereFree) {
  const address_space s = address_space::agree(
      [&](bool mine) { return mine; }, std::uint64_t{512} << 40);  // more than a process has
  EXPECT_LT(s.size(), std::uint64_t{512} << 40);
  EXPECT_GE(s.size(), address_space::least);
}

TEST(AddressSpace, SaysWhatToDoWhenThereIsNone) {
  try {
    (void)address_space::agree([](bool) { return false; });
    FAIL() << "nobody had it, and yet it was agreed";
  } catch (const out_of_memory& e) {
    EXPECT_NE(std::string(e.what()).find("ulimit -v"), std::string::npos) << e.what();
  }
}

TEST(Room, GivesMemoryThatIsGivenBackAsZeros) {
  for (const bool shared : {false, true}) {
    const address_space space = small_space();
    room r(space, 0, shared);
    space.base()[5 * page] = std::byte{7};
    r.discard({space.base() + 5 * page - 100, page + 200});  // one whole page inside
    EXPECT_EQ(space.base()[5 * page], std::byte{0});
    space.base()[page] = std::byte{7};
    r.discard({space.base() + page, page - 1});  // none
    EXPECT_EQ(space.base()[page], std::byte{7});
  }
}

TEST(Room, CanNotLendWhatIsNotInItsFile) {
  const address_space space = small_space();
  const packed_range one{space.base(), page};
  room anonymous(space, 0, false);
  EXPECT_TRUE(anonymous.lend(std::span(&one, 1)).empty());
  room r(space, 0, true);
  const packed_range part{space.base() + 64, page};
  const packed_range outside{space.base() + space.size(), page};
  EXPECT_FALSE(r.lend(std::span(&one, 1)).empty());
  EXPECT_TRUE(r.lend(std::span(&part, 1)).empty());
  EXPECT_TRUE(r.lend(std::span(&outside, 1)).empty());
}

TEST(Room, RefusesWordsThatDoNotCoverTheRanges) {
  const address_space space = small_space();
  room r(space, 3, true);
  const packed_range two{space.base() + page, 2 * page};
  const std::vector<std::uint64_t> good{1, 3, page, 2 * page};
  EXPECT_FALSE(r.adopt(good, std::span(&two, 1)).empty());
  for (const std::vector<std::uint64_t>& bad :
       std::vector<std::vector<std::uint64_t>>{{},
                                               {0},
                                               {2, 3, page, 2 * page},
                                               {1, 4, page, 2 * page},
                                               {1, 3, 0, 2 * page},
                                               {1, 3, page, page},
                                               {1, 3, page, 3 * page},
                                               {1, 3, page, 0},
                                               {~0ull}})
    EXPECT_TRUE(r.adopt(bad, std::span(&two, 1)).empty());
}

TEST(Room, DoesNotOpenAFileThatIsNotTheOneMeant) {
  const address_space space = small_space();
  room r(space, 0, true);
  room::door wrong = r.own_door();
  wrong.owner = 1;
  ++wrong.inode;
  EXPECT_FALSE(r.open(std::span(&wrong, 1)));
  EXPECT_FALSE(r.knows(1));
}

TEST(Room, HandsMemoryOverWithoutCopyingIt) {
  const auto ends = run_parties(2, false, [](party& p) {
    const packed_range given = p.pages(10, 4);
    for (std::size_t i = 8; i < 16; ++i) p.word(i) = 100 * (p.self() + 1) + i;
    p.meet();
    party::require(p.hand_over(0, 1, std::span(&given, 1)), "it moves");
    for (std::size_t i = 8; i < 16; ++i) {
      const bool moved = i >= 10 && i < 14;
      const std::uint64_t giver = moved ? 0 : 100 + i, taker = moved ? 100 + i : 200 + i;
      party::require(p.word(i) == (p.self() == 0 ? giver : taker), "the taker has the words");
    }
    p.meet();
    p.word(11) = p.self();  // nobody sees the other's
    p.meet();
    party::require(p.word(11) == p.self(), "a page has one owner");
    party::require(p.hand_over(1, 0, std::span(&given, 1)), "it comes back");
    party::require(p.memory.pieces() == 1, "all pieces are joined again");
    if (p.self() == 0) party::require(p.word(11) == 1 && p.word(12) == 112, "with what it holds");
  });
  EXPECT_EQ(ends, both_well);
}

TEST(Room, StopsTheGiverThatTouchesWhatItGave) {
  const auto ends = run_parties(2, true, [](party& p) {
    const packed_range given = p.pages(10, 4);
    p.word(10) = 1;
    p.hand_over(0, 1, std::span(&given, 1));
    if (p.self() == 0) {
      party::require(p.memory.is_fenced(p.pages(13, 1)), "it is fenced");
      p.word(14) = 1;
      p.memory.ready({p.at(10) + 100, 64});  // an object of a new region
      p.word(10) = 2;
      party::require(!p.memory.is_fenced(p.pages(10, 1)), "a page may be touched again");
      p.word(11) = 2;
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{-SIGSEGV, 0}));
}

TEST(Room, FencesWhatWasCopiedInstead) {
  const auto ends = run_parties(2, true, [](party& p) {
    const packed_range given = p.pages(10, 4);
    p.word(10) = 5;
    if (p.self() == 0) {
      p.memory.part({}, std::span(&given, 1));
      p.memory.ready(given);
      party::require(p.word(10) == 0, "the memory was given back");
      p.memory.part({}, std::span(&given, 1));
      p.word(12) = 2;
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{-SIGSEGV, 0}));
}

TEST(Room, KeepsOneOwnerForEveryPageThroughManyHandOvers) {
  constexpr std::size_t used = 64;
  const auto ends = run_parties(4, false, [&](party& p) {
    // A model that all compute alike: who holds which token, at each page.
    std::array<std::array<std::uint64_t, used>, 4> token;
    for (unsigned who = 0; who < 4; ++who)
      for (std::size_t i = 0; i < used; ++i) token[who][i] = 1000 * who + i + 1;
    for (std::size_t i = 0; i < used; ++i) p.word(i) = token[p.self()][i];
    std::mt19937 random(7);
    for (unsigned round = 0; round < 300; ++round) {
      const unsigned giver = random() % 4, taker = (giver + 1 + random() % 3) % 4;
      std::vector<packed_range> ranges;
      for (std::size_t i = random() % 16; i < used;) {
        const std::size_t n = std::min<std::size_t>(1 + random() % 8, used - i);
        ranges.push_back(p.pages(i, n));
        for (std::size_t k = i; k < i + n; ++k) {
          token[taker][k] = token[giver][k];
          token[giver][k] = 0;
        }
        i += n + 1 + random() % 16;
      }
      party::require(p.hand_over(giver, taker, ranges), "it moves");
      for (std::size_t i = 0; i < used; ++i)
        party::require(p.word(i) == token[p.self()][i], "everybody reads what is theirs");
      const std::size_t again = random() % used;
      for (unsigned who = 0; who < 4; ++who) token[who][again] = 5000 + 10 * round + who;
      p.word(again) = token[p.self()][again];
      p.meet();
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0, 0}));
}

TEST(Room, RefusesAHandOverThatWouldCostTooManyMappings) {
  const auto ends = run_parties(2, false, [](party& p) {
    unsigned refused = 0;
    for (std::size_t block = 0; block < 16; ++block) {
      std::vector<packed_range> ranges;
      for (std::size_t i = 0; i < 1000; ++i) ranges.push_back(p.pages(2 * (1000 * block + i), 1));
      p.word(2000 * block) = 1;
      if (!p.hand_over(0, 1, ranges)) ++refused;
      p.word(2000 * block) = 2;
    }
    party::require(refused > 0 && refused < 16, "at last it is refused");
    party::require(p.memory.pieces() <= room::most_pieces, "in time");
  });
  EXPECT_EQ(ends, both_well);
}

TEST(PieceMap, AgreesWithAnArray) {
  constexpr unsigned length = 50;
  std::mt19937 random(3);
  piece_map<unsigned> map(0);
  std::array<unsigned, length> model{};
  for (unsigned round = 0; round < 5000; ++round) {
    const auto a = static_cast<unsigned>(random() % (length + 1));
    const auto b = static_cast<unsigned>(random() % (length + 1));
    const auto value = static_cast<unsigned>(random() % 3);
    map.assign(std::min(a, b), std::max(a, b), value);
    for (unsigned i = std::min(a, b); i < std::max(a, b); ++i) model[i] = value;
    unsigned next = 0, pieces = 0;
    map.for_each(0, length, [&](std::uint64_t begin, std::uint64_t end, unsigned piece) {
      EXPECT_EQ(begin, next);
      for (; next < end; ++next) ASSERT_EQ(model[next], piece);
      ++pieces;
    });
    ASSERT_EQ(next, length);
    unsigned differences = 1;
    for (unsigned i = 1; i < length; ++i) differences += model[i] != model[i - 1];
    ASSERT_EQ(pieces, differences);
  }
}

}  // namespace
}  // namespace quarry::cluster
