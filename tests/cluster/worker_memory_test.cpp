// SPDX-License-Identifier: Apache-2.0
// The memory of workers in processes created by fork, without MPI.
#include "cluster/memory/worker_memory.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <random>

namespace quarry::cluster::detail::worker_memory_test {
namespace {

constexpr std::uint64_t space_size = std::uint64_t{1} << 30;
constexpr std::size_t page = worker_memory::system_page;

address_space small_space() {
  return address_space::agree([](bool mine) { return mine; }, space_size);
}

/// What the processes of a test share: file ids, a list of file ranges each, a barrier.
struct table {
  pthread_barrier_t barrier;
  std::array<worker_memory::file_id, 8> ids;
  std::array<bool, 8> has_list;
  std::array<std::size_t, 8> length;
  std::array<std::array<file_range, 2048>, 8> list;
};

/// One process of a test.
class party {
 public:
  party(table& t, unsigned self, unsigned count, const address_space& space, bool fence)
      : table_(&t), self_(self), count_(count), space_(&space), memory(space, self, true, fence) {
    table_->ids[self] = memory.own_file();
    meet();
    require(memory.open_files(std::span(table_->ids).first(count)), "the files can be opened");
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

  /// Collective. Returns whether the memory was exchanged.
  bool hand_over(unsigned sender, unsigned receiver, std::span<const packed_range> ranges) {
    if (self_ == sender) put(memory.export_ranges(ranges));
    meet();
    if (self_ == receiver)
      put(table_->has_list[sender] ? memory.map_shared(got(sender), ranges) : std::nullopt);
    meet();
    const bool moved = table_->has_list[receiver];
    if (self_ == sender && moved) memory.map_exchanged(got(receiver), ranges);
    meet();
    return moved;
  }
  static void require(bool truth, const char* what) {
    if (truth) return;
    std::fprintf(stderr, "process %d: failed: %s\n", static_cast<int>(::getpid()), what);
    std::_Exit(1);
  }

 private:
  void put(const std::optional<std::vector<file_range>>& files) {
    table_->has_list[self_] = files.has_value();
    if (!files) return;
    table_->length[self_] = files->size();
    std::copy(files->begin(), files->end(), table_->list[self_].begin());
  }
  std::span<const file_range> got(unsigned from) const {
    return std::span(table_->list[from]).first(table_->length[from]);
  }

  table* table_;
  unsigned self_, count_;
  const address_space* space_;

 public:
  worker_memory memory;
};

/// Runs the body in `count` processes. Returns how each ended: its exit code, or minus a signal.
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
const std::vector<int> both_succeed{0, 0};

TEST(AddressSpace, UsesTheNextCandidateIfOneProcessCannotReserveTheFirst) {
  unsigned asked = 0;
  const address_space s = address_space::agree(
      [&](bool mine) {
        EXPECT_TRUE(mine);
        return ++asked > 2;  // another process fails twice
      },
      space_size);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.base()), address_space::candidates[2]);
  EXPECT_TRUE(s.contains(s.base() + s.size() - 1));
  EXPECT_FALSE(s.contains(s.base() + s.size()));
  EXPECT_FALSE(s.contains(s.base() - 1));
}

TEST(AddressSpace, ReservesLessIfTheWantedSizeIsNotFree) {
  const address_space s = address_space::agree(
      [&](bool mine) { return mine; }, std::uint64_t{512} << 40);  // more than a process has
  EXPECT_LT(s.size(), std::uint64_t{512} << 40);
  EXPECT_GE(s.size(), address_space::min_size);
}

TEST(AddressSpace, ReportsThatNoCandidateIsFree) {
  try {
    (void)address_space::agree([](bool) { return false; }, space_size);
    FAIL() << "no process had reserved it";
  } catch (const out_of_memory& e) {
    EXPECT_NE(std::string(e.what()).find("ulimit -v"), std::string::npos) << e.what();
  }
}

TEST(WorkerMemory, ReadsAsZerosAfterDiscard) {
  for (const bool shared : {false, true}) {
    const address_space space = small_space();
    worker_memory r(space, 0, shared);
    space.base()[5 * page] = std::byte{7};
    r.discard({space.base() + 5 * page - 100, page + 200});  // one whole page inside
    EXPECT_EQ(space.base()[5 * page], std::byte{0});
    space.base()[page] = std::byte{7};
    r.discard({space.base() + page, page - 1});  // none
    EXPECT_EQ(space.base()[page], std::byte{7});
  }
}

TEST(WorkerMemory, ExportsOnlyWholePagesOfItsFile) {
  const address_space space = small_space();
  const packed_range one{space.base(), page};
  worker_memory anonymous(space, 0, false);
  EXPECT_FALSE(anonymous.export_ranges(std::span(&one, 1)));
  worker_memory r(space, 0, true);
  const packed_range part{space.base() + 64, page};
  const packed_range outside{space.base() + space.size(), page};
  EXPECT_TRUE(r.export_ranges(std::span(&one, 1)));
  EXPECT_FALSE(r.export_ranges(std::span(&part, 1)));
  EXPECT_FALSE(r.export_ranges(std::span(&outside, 1)));
}

TEST(WorkerMemory, RejectsFileRangesThatDoNotCoverTheAddressRanges) {
  const address_space space = small_space();
  worker_memory r(space, 3, true);
  const packed_range two{space.base() + page, 2 * page};
  const std::vector<file_range> good{{3, page, 2 * page}};
  EXPECT_TRUE(r.map_shared(good, std::span(&two, 1)));
  for (const std::vector<file_range>& bad :
       std::vector<std::vector<file_range>>{{},
                                            {{3, page, 2 * page}, {3, page, 2 * page}},
                                            {{4, page, 2 * page}},
                                            {{3, 0, 2 * page}},
                                            {{3, page, page}},
                                            {{3, page, 3 * page}},
                                            {{3, page, 0}},
                                            {{3, page, 0}, {3, page, 2 * page}},
                                            {{3, ~0ull, ~0ull}}})
    EXPECT_FALSE(r.map_shared(bad, std::span(&two, 1)));
}

TEST(WorkerMemory, DoesNotOpenAFileWithAnotherInode) {
  const address_space space = small_space();
  worker_memory r(space, 0, true);
  worker_memory::file_id wrong = r.own_file();
  wrong.owner = 1;
  ++wrong.inode;
  EXPECT_FALSE(r.open_files(std::span(&wrong, 1)));
  EXPECT_FALSE(r.shares_with(1));
}

TEST(WorkerMemory, HandsPagesOverWithoutACopy) {
  const auto ends = run_parties(2, false, [](party& p) {
    const packed_range handed = p.pages(10, 4);
    for (std::size_t i = 8; i < 16; ++i) p.word(i) = 100 * (p.self() + 1) + i;
    p.meet();
    party::require(p.hand_over(0, 1, std::span(&handed, 1)), "the pages are exchanged");
    for (std::size_t i = 8; i < 16; ++i) {
      const bool moved = i >= 10 && i < 14;
      const std::uint64_t sent = moved ? 0 : 100 + i, received = moved ? 100 + i : 200 + i;
      party::require(p.word(i) == (p.self() == 0 ? sent : received), "the receiver has the words");
    }
    p.meet();
    p.word(11) = p.self();  // each process writes to its own page
    p.meet();
    party::require(p.word(11) == p.self(), "a page has one owner");
    party::require(p.hand_over(1, 0, std::span(&handed, 1)), "the pages come back");
    party::require(p.memory.mappings() == 1, "the mappings are merged again");
    if (p.self() == 0) party::require(p.word(11) == 1 && p.word(12) == 112, "with their contents");
  });
  EXPECT_EQ(ends, both_succeed);
}

TEST(WorkerMemory, EndsASenderThatAccessesWhatItHandedOver) {
  const auto ends = run_parties(2, true, [](party& p) {
    const packed_range handed = p.pages(10, 4);
    p.word(10) = 1;
    p.hand_over(0, 1, std::span(&handed, 1));
    if (p.self() == 0) {
      party::require(p.memory.is_protected(p.pages(13, 1)), "the page is protected");
      p.word(14) = 1;
      p.memory.enable_access({p.at(10) + 100, 64});  // an object of a new region
      p.word(10) = 2;
      party::require(!p.memory.is_protected(p.pages(10, 1)), "the page is accessible again");
      p.word(11) = 2;
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{-SIGSEGV, 0}));
}

TEST(WorkerMemory, ProtectsWhatWasHandedOverByACopy) {
  const auto ends = run_parties(2, true, [](party& p) {
    const packed_range handed = p.pages(10, 4);
    p.word(10) = 5;
    if (p.self() == 0) {
      p.memory.give_up(std::span(&handed, 1));
      p.memory.enable_access(handed);
      party::require(p.word(10) == 0, "the memory was freed");
      p.memory.give_up(std::span(&handed, 1));
      p.word(12) = 2;
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{-SIGSEGV, 0}));
}

TEST(WorkerMemory, KeepsOneOwnerOfEveryPageThroughManyHandOvers) {
  constexpr std::size_t used = 64;
  const auto ends = run_parties(4, false, [&](party& p) {
    // All processes compute the same model: the token of each process at each page.
    std::array<std::array<std::uint64_t, used>, 4> token;
    for (unsigned who = 0; who < 4; ++who)
      for (std::size_t i = 0; i < used; ++i) token[who][i] = 1000 * who + i + 1;
    for (std::size_t i = 0; i < used; ++i) p.word(i) = token[p.self()][i];
    std::mt19937 random(7);
    for (unsigned round = 0; round < 300; ++round) {
      const unsigned sender = random() % 4, receiver = (sender + 1 + random() % 3) % 4;
      std::vector<packed_range> ranges;
      for (std::size_t i = random() % 16; i < used;) {
        const std::size_t n = std::min<std::size_t>(1 + random() % 8, used - i);
        ranges.push_back(p.pages(i, n));
        for (std::size_t k = i; k < i + n; ++k) {
          token[receiver][k] = token[sender][k];
          token[sender][k] = 0;
        }
        i += n + 1 + random() % 16;
      }
      party::require(p.hand_over(sender, receiver, ranges), "the pages are exchanged");
      for (std::size_t i = 0; i < used; ++i)
        party::require(p.word(i) == token[p.self()][i], "each process reads its own token");
      const std::size_t again = random() % used;
      for (unsigned who = 0; who < 4; ++who) token[who][again] = 5000 + 10 * round + who;
      p.word(again) = token[p.self()][again];
      p.meet();
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0, 0}));
}

TEST(WorkerMemory, DeclinesAHandOverBeyondTheLimitOfMappings) {
  const auto ends = run_parties(2, false, [](party& p) {
    unsigned declined = 0;
    for (std::size_t block = 0; block < 16; ++block) {
      std::vector<packed_range> ranges;
      for (std::size_t i = 0; i < 1000; ++i) ranges.push_back(p.pages(2 * (1000 * block + i), 1));
      p.word(2000 * block) = 1;
      if (!p.hand_over(0, 1, ranges)) ++declined;
      p.word(2000 * block) = 2;
    }
    party::require(declined > 0 && declined < 16, "the last hand-overs are declined");
    party::require(p.memory.mappings() <= worker_memory::max_mappings, "the limit is kept");
  });
  EXPECT_EQ(ends, both_succeed);
}

TEST(IntervalMap, AgreesWithAnArray) {
  constexpr unsigned length = 50;
  std::mt19937 random(3);
  interval_map<unsigned> map(0);
  std::array<unsigned, length> model{};
  for (unsigned round = 0; round < 5000; ++round) {
    const auto a = static_cast<unsigned>(random() % (length + 1));
    const auto b = static_cast<unsigned>(random() % (length + 1));
    const auto value = static_cast<unsigned>(random() % 3);
    map.assign(std::min(a, b), std::max(a, b), value);
    for (unsigned i = std::min(a, b); i < std::max(a, b); ++i) model[i] = value;
    unsigned next = 0, intervals = 0;
    map.for_each(0, length, [&](std::uint64_t begin, std::uint64_t end, unsigned value_there) {
      EXPECT_EQ(begin, next);
      for (; next < end; ++next) ASSERT_EQ(model[next], value_there);
      ++intervals;
    });
    ASSERT_EQ(next, length);
    unsigned differences = 1;
    for (unsigned i = 1; i < length; ++i) differences += model[i] != model[i - 1];
    ASSERT_EQ(intervals, differences);
  }
}

}  // namespace
}  // namespace quarry::cluster::detail::worker_memory_test
