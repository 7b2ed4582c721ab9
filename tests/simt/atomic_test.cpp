// SPDX-License-Identifier: Apache-2.0
/// atomic_ref on both backends: every operation in both widths, and no lost update among many
/// lanes.

#include <quarry/simt/simt.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace quarry::simt::atomic_test {
namespace {

using here = default_backend;

/// Executes each operation once, and stores the old values and the final word to `out`.
template <class T>
struct each_once {
  T* out;
  QUARRY_DEVICE void operator()() const {
    T word = 0;
    T* place = out;  // the word under test is in memory of the backend, not on the stack
    *place = word;
    atomic_ref<T> a(*place);
    T* log = out + 1;
    a.store(40, release);
    *log++ = a.load(acquire);
    *log++ = a.exchange(50, acq_rel);
    T expected = 7;
    *log++ = static_cast<T>(a.compare_exchange(expected, 8, acquire));
    *log++ = expected;
    *log++ = static_cast<T>(a.compare_exchange(expected, 60, acq_rel));
    *log++ = a.fetch_add(5, relaxed);
    *log++ = a.fetch_sub(1, release);
    *log++ = a.fetch_and(static_cast<T>(0xf0), relaxed);
    *log++ = a.fetch_or(static_cast<T>(0x0f), acquire);
    *log++ = a.fetch_xor(static_cast<T>(0xff), relaxed);
    *log++ = a.fetch_max(300, relaxed);
    *log++ = a.fetch_min(20, relaxed);
    a.add(10, relaxed);
    a.sub(3, relaxed);
    a.bit_or(static_cast<T>(0x40), release);
    a.bit_and(static_cast<T>(0x7e), release);
    *log++ = a.load(relaxed);
  }
};

template <class T>
void expect_each_once() {
  simt::array<T, here> out(20);
  launch<here>({1, 1}, each_once<T>{out.data()});
  const auto got = out.to_host();
  const T want[] = {40, 40, 0, 50, 1, 60, 65, 64, 64, 0x4f, 0xb0, 300, (((20 + 7) | 0x40) & 0x7e)};
  for (std::size_t i = 0; i < std::size(want); ++i)
    EXPECT_EQ(got[i + 1], want[i]) << "operation " << i;
}

TEST(Atomic, OperationsOf32And64BitsReturnTheOldValue) {
  expect_each_once<std::uint32_t>();
  expect_each_once<std::uint64_t>();
  expect_each_once<std::int32_t>();
  expect_each_once<std::int64_t>();
}

struct negative_extremes {
  std::int32_t* out;
  QUARRY_DEVICE void operator()() const {
    atomic_ref<std::int32_t>(out[0]).fetch_min(-5, relaxed);
    atomic_ref<std::int32_t>(out[1]).fetch_max(-5, relaxed);
  }
};

TEST(Atomic, MinimumAndMaximumRespectTheSign) {
  simt::array<std::int32_t, here> out(2);
  launch<here>({1, 1}, negative_extremes{out.data()});
  EXPECT_EQ(out.to_host()[0], -5);
  EXPECT_EQ(out.to_host()[1], 0);
}

struct add_from_everywhere {
  std::uint64_t* cells;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = global_thread();
    atomic_ref<std::uint64_t>(cells[0]).add(me, relaxed);
    atomic_ref<std::uint64_t>(cells[1]).fetch_max(me, relaxed);
    atomic_ref<std::uint64_t> third(cells[2]);
    std::uint64_t old = third.load(relaxed);
    while (!third.compare_exchange(old, old + 1, relaxed)) {
    }
  }
};

TEST(Atomic, LosesNoUpdateAmongManyLanes) {
  simt::array<std::uint64_t, here> cells(3);
  launch<here>({64, 128}, add_from_everywhere{cells.data()});
  constexpr std::uint64_t n = 64 * 128;
  EXPECT_EQ(cells.to_host()[0], n * (n - 1) / 2);
  EXPECT_EQ(cells.to_host()[1], n - 1);
  EXPECT_EQ(cells.to_host()[2], n);
}

/// A spin lock that does not call spin(). It must terminate on both backends.
struct naked_spin_lock {
  std::uint32_t* lock;
  std::uint32_t* count;
  QUARRY_DEVICE void operator()() const {
    for (bool done = false; !done;) {
      std::uint32_t open = 0;
      if (atomic_ref<std::uint32_t>(*lock).compare_exchange(open, 1, acquire)) {
        *count += 1;
        atomic_ref<std::uint32_t>(*lock).store(0, release);
        done = true;
      }
    }
  }
};

TEST(Atomic, ASpinLockBetweenLanesOfAWarpTerminates) {
  simt::array<std::uint32_t, here> words(2);
  launch<here>({4, 64}, naked_spin_lock{words.data(), words.data() + 1});
  EXPECT_EQ(words.to_host()[1], 256u);
}

}  // namespace
}  // namespace quarry::simt::atomic_test
