// SPDX-License-Identifier: Apache-2.0
#pragma once
/// slab_fault: deliberate faults of the slab heap, selected by slab_tuning::fault.
///
/// A slab heap with a fault is a mutant: tests/mutants requires the explorer to detect each of them.
/// The selection is a compile-time constant; with `none` no fault leaves a trace in the machine code.

#include <cstdint>

namespace quarry {

enum class slab_fault : std::uint32_t {
  none,
  /// A released segment keeps the bits of its slots set.
  skips_bitmap_clear,
  /// A segment's count omits the slots that a cursor has reserved, so two owners share slots.
  skips_reservation_count,
  /// A cursor reserves slots whose bits stay in the inline bitmap, where no lane claims them.
  reserves_without_bits,
  /// Reservations are cancelled while their bits stay set, so the slots are free twice.
  keeps_bits_of_cancelled_reservations,
  /// A segment is not listed again when lanes reserve only a part of its free slots.
  drops_partial_segment,
  /// A refill that finds no memory does not publish the exhaustion, so its waiters spin for ever.
  hides_exhaustion,
  /// The lanes with the ticket after the end ticket refill the cursor too, so one refill is lost.
  refills_twice,
  /// A lone lane lowers the count before it sets the bit, and records no pending bit.
  counts_before_bit,
  /// The lane that releases a segment does not wait for pending bits.
  ignores_pending_bits,
  /// A segment is released before it leaves its lists, so a later insertion is undone.
  releases_before_unlisting,
  /// The last segment of a refill is assigned to no size class.
  skips_class_of_last_segment,
};

}  // namespace quarry
