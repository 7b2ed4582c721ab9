// SPDX-License-Identifier: Apache-2.0
/// Mutants of the slab heap: the explorer must detect each fault of slab_fault.
///
/// A test names the fault, the largest number of schedules that the exploration may take, and a
/// part of the expected failure message; an empty text accepts any failure. Some faults concern
/// only segments whose free slots are counted, others only segments with an inline bitmap:
/// `counted` and `with_inline_bitmap` select the form for all segments of the explored pools.

#include "check/effort.hpp"

#include <quarry/check/explore_allocator.hpp>
#include <quarry/pool/slab/slab.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace quarry {
namespace {

inline constexpr slab_tuning counted{.few_slots = 0};
inline constexpr slab_tuning with_inline_bitmap{.few_slots = 25};

constexpr slab_tuning mutate(slab_tuning tuning, slab_fault fault) {
  tuning.fault = fault;
  return tuning;
}

template <slab_tuning Tuning, slab_fault Fault>
void expect_detected(std::uint64_t schedules, const std::string& message) {
  if (effort_divisor != 1) GTEST_SKIP() << "the failures are too rare for a slow build";
  const exploration found = expect_failure<basic_slab<mutate(Tuning, Fault)>>(
      {.bounds = {.lanes = 40, .blocks = 3, .operations = 12},
       .pool_bytes = 4096,
       .schedules = schedules,
       .step_limit = 400'000,
       .refill_one_in = 4,
       .minimise = false},
      message);
  if (found.first)
    std::printf("after %llu schedules: %s\n", static_cast<unsigned long long>(found.schedules),
                found.first->text.c_str());
}

TEST(SlabMutant, SkipsBitmapClear) {
  expect_detected<counted, slab_fault::skips_bitmap_clear>(200, "");
}
TEST(SlabMutant, SkipsReservationCount) {
  expect_detected<counted, slab_fault::skips_reservation_count>(2'000, "");
}
TEST(SlabMutant, ReservesWithoutBits) {
  expect_detected<with_inline_bitmap, slab_fault::reserves_without_bits>(200, "step limit");
}
TEST(SlabMutant, KeepsBitsOfCancelledReservations) {
  expect_detected<with_inline_bitmap, slab_fault::keeps_bits_of_cancelled_reservations>(2'000, "");
}
TEST(SlabMutant, DropsPartialSegment) {
  expect_detected<with_inline_bitmap, slab_fault::drops_partial_segment>(200, "not listed");
}
TEST(SlabMutant, HidesExhaustion) {
  expect_detected<with_inline_bitmap, slab_fault::hides_exhaustion>(200, "step limit");
}
TEST(SlabMutant, RefillsTwice) {
  expect_detected<with_inline_bitmap, slab_fault::refills_twice>(2'000, "");
}
TEST(SlabMutant, CountsBeforeBit) {
  expect_detected<counted, slab_fault::counts_before_bit>(20'000, "");
}
TEST(SlabMutant, IgnoresPendingBits) {
  expect_detected<counted, slab_fault::ignores_pending_bits>(20'000, "");
}
TEST(SlabMutant, ReleasesBeforeUnlisting) {
  expect_detected<with_inline_bitmap, slab_fault::releases_before_unlisting>(100'000, "not listed");
}
TEST(SlabMutant, SkipsClassOfLastSegment) {
  expect_detected<with_inline_bitmap, slab_fault::skips_class_of_last_segment>(2'000, "");
}

}  // namespace
}  // namespace quarry
