// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bounded_fifo: a lock-free queue of 32-bit values with a capacity of 2^s. It is the queue of
/// XMalloc (Huang et al. 2013), with corrections.
///
/// Values are stored in messages {number, payload} of one 64-bit word. The n-th value has number n
/// (modulo 2^32). The number determines the slot of the message, and distinguishes it from earlier
/// and later messages in the same slot.
///
///   head   number of the oldest message        tail   the newest message itself
///   slots  message n is in slot n mod 2^s once a newer one exists; until then only in tail
///
///            head = 5                tail = {8, d}               contents 5, 6, 7, 8
///   slots  | {4, -} | {5, a} | {6, b} | {7, c} |                 9 moves 8 to slot 0
///
/// enqueue  loads head and tail and fails if the queue is full. Otherwise it copies tail to its
///          slot, unless another lane has, and replaces tail {n, ...} by {n + 1, value} with a
///          compare-and-swap.
/// dequeue  loads head and tail and fails if the queue is empty. Otherwise it reads message `head`,
///          from tail if it is the newest and from its slot otherwise, and replaces head n by n + 1
///          with a compare-and-swap.
///
/// Invariants
///   head <= tail.number + 1                                 (equal: empty)
///   tail.number + 1 - head <= Capacity                      (equal: full)
///   slot[n mod Capacity].number == n  for  tail.number - Capacity < n < tail.number; the slot of
///   tail.number holds that number or the one Capacity before it.
/// head and tail grow by 1; a slot changes from n to n + Capacity only.
///
/// The error of the published algorithm. It tests tail.number - head + 1 == Capacity with a head
/// that may be stale when tail is loaded. With a stale head the count exceeds Capacity, the test is
/// false, and a full queue accepts another value. The slot of that value still holds one that was
/// not dequeued: the latter is lost, and another value is returned twice. The corrections:
///   - `>=` instead of `==`. Heads only grow, so a queue that is not full by a stale head is not
///     full.
///   - A queue that is full by a stale head may have room. enqueue therefore loads head again. If
///     head is unchanged, it had this value when tail was loaded, and the queue was full at that
///     moment. Otherwise enqueue retries.
///   - Messages are loaded as single 64-bit words. Two 32-bit loads may read two messages.
///   - tail is never loaded before head. A head newer than tail would make the count negative.
///
/// Linearizable: dequeue takes effect at the compare-and-swap of head, enqueue at that of tail.
/// "Full" and "empty" hold at the load of tail.
/// Progress: lock-free. A call retries only if head or tail has changed since it was loaded, which
/// means that another call has succeeded; each success costs every other call at most one retry.
/// Complexity without contention: dequeue makes 4 accesses (3 for the last message), enqueue 5, as
/// in the paper. A failed compare-and-swap returns the new word, so a retry is one or two accesses
/// shorter.
///
/// Memory ordering
///   load of head, acquire    precedes the loads of tail and slots. It synchronizes with the
///                            release below: the lane that changed head had loaded a tail at least
///                            as new, so this lane does not load an older tail.
///   load of tail, acquire    makes visible what the enqueuing lane wrote before (the memory that
///                            the payload names, and its copy to a slot). The second load of head
///                            follows.
///   CAS of tail, release     publishes these writes. Every modification of tail is a
///                            read-modify-write operation, so a load of any later tail acquires
///                            them, too. A failed CAS acquires: its value is the tail of the next
///                            round.
///   CAS of head, release     follows the load of the slot: an enqueuing lane that loads the new
///                            head may overwrite the slot. A failed CAS acquires, as the load does.
///   slots, relaxed           A slot is loaded after a tail newer than its message was acquired, so
///                            the load returns that message or a later one. In the latter case head
///                            has changed, and the CAS of head fails.
///
/// Assumption: while a lane is between a load and its compare-and-swap, fewer than 2^32 messages
/// are enqueued.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>
#include <string>

namespace quarry {

/// A number and a value in one word. The number is in the upper half.
struct fifo_message {
  std::uint32_t number;
  std::uint32_t payload;

  QUARRY_DEVICE constexpr std::uint64_t packed() const {
    return std::uint64_t{number} << 32 | payload;
  }
  QUARRY_DEVICE static constexpr fifo_message unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
  }
};

template <std::uint32_t Capacity>
class bounded_fifo {
  static_assert(is_power_of_two(Capacity) && Capacity <= 1u << 30);

 public:
  static constexpr std::uint32_t capacity = Capacity;

  /// The memory of the queue, which the caller owns. head and tail are in different cache lines.
  struct storage {
    alignas(64) std::uint32_t head;
    alignas(64) std::uint64_t tail;
    alignas(64) std::uint64_t slots[Capacity];
  };

  bounded_fifo() = default;
  /// A view. It may be constructed before its memory exists.
  QUARRY_DEVICE explicit bounded_fifo(storage* where) : at_(where) {}

  /// Effects: makes the queue empty, as if all messages up to number `first` had been dequeued.
  /// Each of `lanes` lanes calls it with its own index and initialises a part. Tests pass a `first`
  /// shortly before the numbers wrap around. Requires: no other call is in progress.
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes,
                                std::uint32_t first = Capacity) const;

  /// Returns: false if the queue was full.
  QUARRY_DEVICE bool enqueue(std::uint32_t value) const;

  /// Returns: false if the queue was empty; `value` is then unchanged.
  QUARRY_DEVICE bool dequeue(std::uint32_t& value) const;

  // The following functions require a quiescent queue.

  QUARRY_DEVICE std::uint32_t size() const {
    return fifo_message::unpack(at_->tail).number + 1 - at_->head;
  }

  /// Effects: calls visit(value) for each value, from the oldest to the newest.
  template <class Visit>
  void visit(Visit&& visit) const;

  /// Returns: an empty string if the invariants hold, otherwise a description of the violation.
  std::string check_invariants() const;

 private:
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> head() const {
    return simt::atomic_ref<std::uint32_t>(at_->head);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> tail() const {
    return simt::atomic_ref<std::uint64_t>(at_->tail);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> slot(std::uint32_t number) const {
    return simt::atomic_ref<std::uint64_t>(at_->slots[number % Capacity]);
  }
  QUARRY_DEVICE void copy_to_slot(fifo_message newest) const;

  storage* at_ = nullptr;
};

template <std::uint32_t Capacity>
QUARRY_DEVICE bool bounded_fifo<Capacity>::enqueue(std::uint32_t value) const {
  std::uint32_t oldest = head().load(simt::acquire);
  std::uint64_t newest_word = tail().load(simt::acquire);
  for (;;) {
    const fifo_message newest = fifo_message::unpack(newest_word);
    if (newest.number + 1 - oldest >= Capacity) {
      const std::uint32_t again = head().load(simt::acquire);
      if (again == oldest) return false;
      oldest = again;
      newest_word = tail().load(simt::acquire);
      continue;
    }
    copy_to_slot(newest);
    if (tail().compare_exchange(newest_word, fifo_message{newest.number + 1, value}.packed(),
                                simt::acq_rel))
      return true;
  }
}

template <std::uint32_t Capacity>
QUARRY_DEVICE bool bounded_fifo<Capacity>::dequeue(std::uint32_t& value) const {
  std::uint32_t oldest = head().load(simt::acquire);
  for (;;) {
    const fifo_message newest = fifo_message::unpack(tail().load(simt::acquire));
    if (newest.number + 1 == oldest) return false;
    const std::uint32_t found =
        newest.number == oldest ? newest.payload
                                : fifo_message::unpack(slot(oldest).load(simt::relaxed)).payload;
    if (head().compare_exchange(oldest, oldest + 1, simt::acq_rel)) {
      value = found;
      return true;
    }
  }
}

// Copies the newest message to its slot, unless another lane has done so.
template <std::uint32_t Capacity>
QUARRY_DEVICE void bounded_fifo<Capacity>::copy_to_slot(fifo_message newest) const {
  std::uint64_t there = slot(newest.number).load(simt::relaxed);
  if (fifo_message::unpack(there).number + Capacity == newest.number)
    slot(newest.number).compare_exchange(there, newest.packed(), simt::relaxed);
}

template <std::uint32_t Capacity>
QUARRY_DEVICE void bounded_fifo<Capacity>::initialise(std::uint64_t lane, std::uint64_t lanes,
                                                      std::uint32_t first) const {
  for (std::uint64_t i = lane; i < Capacity; i += lanes) {
    const std::uint32_t number = first - Capacity + static_cast<std::uint32_t>(i);
    at_->slots[number % Capacity] = fifo_message{number, 0}.packed();
  }
  if (lane != 0) return;
  at_->tail = fifo_message{first, 0}.packed();
  at_->head = first + 1;
}

template <std::uint32_t Capacity>
template <class Visit>
void bounded_fifo<Capacity>::visit(Visit&& visit) const {
  const fifo_message newest = fifo_message::unpack(at_->tail);
  for (std::uint32_t n = at_->head; n != newest.number + 1; ++n)
    visit(n == newest.number ? newest.payload
                             : fifo_message::unpack(at_->slots[n % Capacity]).payload);
}

template <std::uint32_t Capacity>
std::string bounded_fifo<Capacity>::check_invariants() const {
  const std::uint32_t newest = fifo_message::unpack(at_->tail).number;
  if (size() > Capacity)
    return "fifo: head " + std::to_string(at_->head) + " and tail " + std::to_string(newest) +
           " hold " + std::to_string(size()) + " messages, more than the capacity " +
           std::to_string(Capacity);
  for (std::uint32_t back = 1; back <= Capacity; ++back) {
    const std::uint32_t expected = newest - back;
    const std::uint32_t found = fifo_message::unpack(at_->slots[expected % Capacity]).number;
    // An enqueue that failed later may have copied the newest message to its slot.
    if (found == expected || (back == Capacity && found == newest)) continue;
    return "fifo: slot " + std::to_string(expected % Capacity) + " holds message " +
           std::to_string(found) + " where " + std::to_string(expected) + " is expected";
  }
  return {};
}

}  // namespace quarry
