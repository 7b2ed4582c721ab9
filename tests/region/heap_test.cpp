// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/heap.hpp>

#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace heap_test {
namespace {

using namespace quarry;

TEST(RegionHeap, FollowsTheRulesOfMallocAndRealloc) {
  region_heap<> heap;
  void* nothing = heap.allocate(0);
  EXPECT_NE(nothing, nullptr);
  EXPECT_EQ(heap.deallocate(nothing), region_status::ok);
  EXPECT_EQ(heap.deallocate(nullptr), region_status::ok);
  EXPECT_EQ(heap.allocate(~std::size_t{0}), nullptr);
  auto* p = static_cast<char*>(heap.reallocate(nullptr, 10));
  std::strcpy(p, "text");
  p = static_cast<char*>(heap.reallocate(p, 100'000));
  EXPECT_STREQ(p, "text");
  EXPECT_GE(heap.usable_size(p), 100'000u);
  EXPECT_EQ(heap.reallocate(p + 64, 10), nullptr);
  EXPECT_EQ(heap.deallocate(p + 64), region_status::not_an_object);
  EXPECT_EQ(heap.deallocate(p), region_status::ok);
  EXPECT_EQ(heap.deallocate(p), region_status::not_an_object);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(heap.allocate(100, 65'536)) % 65'536, 0u);
  EXPECT_EQ(heap.tree().check_invariants(), "");
}

TEST(RegionHeap, FreesObjectsOfOtherThreads) {
  region_heap<> heap;
  std::vector<std::atomic<unsigned char*>> table(1000);
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 20'000; ++i) {
        const std::size_t n = random() % 3000 + 2;
        auto* p = static_cast<unsigned char*>(heap.allocate(n));
        if (p == nullptr) {
          ++faults;
          continue;
        }
        p[0] = p[1] = static_cast<unsigned char>(n);
        unsigned char* old = table[random() % table.size()].exchange(p);
        if (old == nullptr) continue;
        if (old[0] != old[1] || heap.deallocate(old) != region_status::ok) ++faults;
      }
    });
  for (std::thread& t : threads) t.join();
  for (auto& p : table) EXPECT_EQ(heap.deallocate(p), region_status::ok);
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(heap.tree().check_invariants(), "");
}

TEST(RegionHeap, HasEightSizesFromOnePowerOfTwoToTheNext) {
  using heap = region_heap<>;
  EXPECT_EQ(heap::slot_size(0), 16u);
  std::map<unsigned, std::size_t> sizes;
  std::size_t last = 0;
  for (std::size_t n = 1; n <= 65'536; ++n) {
    const std::size_t size = heap::slot_size(n);
    ASSERT_GE(size, n);
    ASSERT_LT(size, n + 16 + n / 8) << n;
    ASSERT_EQ(heap::slot_size(size), size);
    if (size != last) ++sizes[static_cast<unsigned>(std::bit_width(size - 1))];
    last = size;
  }
  for (const auto& [width, count] : sizes) EXPECT_LE(count, 8u) << "up to 2^" << width;
  for (std::size_t alignment = 16; alignment <= 4096; alignment *= 2)
    for (std::size_t n = 1; n < 9000; n += 7)
      ASSERT_EQ(heap::slot_size(align_up(heap::slot_size(n), alignment)),
                align_up(heap::slot_size(n), alignment));
}

/// Threads that take turns, and what each of them has allocated. Thread t allocates in a region of
/// its own; in each round it frees objects of another thread.
class exchange {
 public:
  static constexpr unsigned threads = 4;
  static constexpr std::uint64_t live_bytes = std::uint64_t{4} << 20;  // of each thread
  static constexpr std::size_t small = 8192;  // larger objects have slabs of their own

  exchange() {
    std::barrier turn(threads);
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        std::mt19937_64 random(t);
        for (unsigned round = 0; round < 60; ++round) {
          fill(owned_[t], random);
          turn.arrive_and_wait();
          if (t == 0) largest_ = std::max(largest_, heap_.statistics().committed_bytes);
          turn.arrive_and_wait();
          drain(owned_[(t + 1 + round) % threads], random);
          turn.arrive_and_wait();
        }
      });
    for (std::thread& t : all) t.join();
  }

  region_heap<>& heap() { return heap_; }
  std::uint64_t largest() const { return largest_; }
  unsigned failures() const { return failures_; }
  void free_all() {
    std::mt19937_64 random(9);
    for (owner& it : owned_)
      while (!it.objects.empty()) free_one(it, random);
  }

  /// Returns the bound that heap.hpp states.
  std::uint64_t bound() const {
    constexpr std::uint64_t kib = 1024, mib = 1024 * kib;
    std::uint64_t held = 0;
    for (const owner& it : owned_) {
      std::uint64_t kept = it.largest_large + 8 * mib, pieces = it.largest_pieces;
      for (const auto& [size, most] : it.largest_of_size) {
        kept += most + 16 * kib;
        pieces +=
            (most + 16 * kib) / (heap_geometry.group_of(static_cast<unsigned>(size / 16)) * kib);
      }
      held += (kept + 30 * kib * pieces) * 16 / 13;
    }
    return held + 8 * mib + held / 16;
  }

 private:
  struct owner {
    std::vector<std::pair<void*, std::size_t>> objects;
    std::uint64_t live = 0, large = 0, largest_large = 0, pieces = 0, largest_pieces = 0;
    std::map<std::size_t, std::uint64_t> live_of_size, largest_of_size;
  };

  void fill(owner& it, std::mt19937_64& random) {
    while (it.live < live_bytes) {
      const std::size_t size = region_heap<>::slot_size(
          static_cast<std::size_t>(std::exp2(4 + static_cast<double>(random() % 12'000) / 1000)));
      it.objects.emplace_back(heap_.allocate(size), size);
      it.live += size;
      if (size > small) {
        it.largest_large = std::max(it.largest_large, it.large += size);
        it.largest_pieces = std::max(it.largest_pieces, ++it.pieces);
      } else {
        std::uint64_t& most = it.largest_of_size[size];
        most = std::max(most, it.live_of_size[size] += size);
      }
    }
  }
  void drain(owner& it, std::mt19937_64& random) {
    const std::uint64_t leave = random() % live_bytes;
    while (it.live > leave) free_one(it, random);
  }
  void free_one(owner& it, std::mt19937_64& random) {
    std::swap(it.objects[random() % it.objects.size()], it.objects.back());
    const auto [p, size] = it.objects.back();
    it.objects.pop_back();
    if (heap_.deallocate(p) != region_status::ok) ++failures_;
    it.live -= size;
    if (size > small) {
      it.large -= size;
      --it.pieces;
    } else {
      it.live_of_size[size] -= size;
    }
  }

  region_heap<> heap_;
  std::array<owner, threads> owned_;
  std::atomic<unsigned> failures_{0};
  std::uint64_t largest_ = 0;
};

TEST(RegionHeap, TakesBoundedMemoryWhileThreadsFreeObjectsOfEachOther) {
  exchange it;
  EXPECT_EQ(it.failures(), 0u);
  EXPECT_EQ(it.heap().statistics().regions, exchange::threads);
  EXPECT_LE(it.largest(), it.bound());
  EXPECT_LE(it.largest(), 3 * exchange::threads * exchange::live_bytes);
  it.free_all();
  EXPECT_EQ(it.heap().statistics().live_bytes, 0u);
  EXPECT_LE(it.heap().statistics().committed_bytes, std::uint64_t{8 + 6 * exchange::threads} << 20);
  EXPECT_EQ(it.heap().tree().check_invariants(), "");
}

TEST(RegionHeap, ReusesTheRegionsOfThreadsThatEnded) {
  region_heap<> heap;
  std::vector<void*> kept;
  for (int i = 0; i < 300; ++i)
    std::thread([&] {
      void* p = heap.allocate(1000);
      kept.push_back(heap.allocate(100));
      heap.deallocate(p);
    }).join();
  EXPECT_EQ(heap.statistics().regions, 1u);
  EXPECT_LE(heap.statistics().committed_bytes, 2u << 20);
  for (void* p : kept) EXPECT_EQ(heap.deallocate(p), region_status::ok);
}

TEST(RegionHeap, SharesMemoryThatThreadsFreedInTurn) {
  region_heap<> heap;
  constexpr std::size_t size = 3000, count = 4000;  // 12 MB
  std::barrier turn(4);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (unsigned now = 0; now < 8; ++now, turn.arrive_and_wait()) {
        if (now % 4 != t) continue;
        std::vector<void*> all(count);
        for (void*& p : all) p = heap.allocate(size);
        for (void* p : all) heap.deallocate(p);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(heap.statistics().regions, 4u);
  EXPECT_LE(heap.statistics().committed_bytes, std::uint64_t{20} << 20);
}

}  // namespace
}  // namespace heap_test
