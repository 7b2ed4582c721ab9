// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bounded_fifo: a lock-free queue of 32-bit values with room for Capacity = 2^s of them; the
/// buffer of XMalloc (Huang et al. 2013), repaired.
///
/// Values travel in messages {number, payload}, one 64-bit word each. The n-th value has number n
/// (modulo 2^32): it says where the message belongs and tells it from all others that lay there.
///
///   head   number of the oldest message        tail   the newest message, whole
///   slots  message n lies in slot n mod 2^s once a newer one exists; until then only in tail
///
///            head = 5                tail = {8, d}               holds 5, 6, 7, 8
///   slots  | {4, -} | {5, a} | {6, b} | {7, c} |                 8 goes to slot 0 when 9 comes
///
/// enqueue  read head and tail; full? else copy tail to its slot (whoever comes first does it, the
///          others see its number there), then swing tail from n to {n + 1, value}.
/// dequeue  read head and tail; empty? else read message `head`, from tail if it is the newest,
///          from its slot otherwise, then swing head from n to n + 1.
///
/// Invariants
///   head <= tail.number + 1                                 (equal: empty)
///   tail.number + 1 - head <= Capacity                      (equal: full)
///   slot[n mod Capacity].number == n  for  tail.number - Capacity < n < tail.number; the slot of
///   tail.number holds that number or the one Capacity before it.
/// head and tail only grow, one by one; a slot only goes from n to n + Capacity.
///
/// Why the published form fails. It says full if tail.number - head + 1 == Capacity, with a head
/// that may be old by the time tail is read. The old head makes the count too large: it is past
/// Capacity, `==` is false, and a full queue takes one more; its slot still holds a value that
/// nobody has taken, which is lost, while another comes out twice. `>=` is safe: heads only grow,
/// so what is not full by an old head is not full. But then an old head may call a queue full that
/// is not. So head is read again: if it has not moved, it had this value when tail was read, and
/// the queue was full at that moment; if it moved, try again. Messages are read by single 64-bit
/// loads: two halves may be of two messages. tail is never read before head: a head newer than tail
/// counts below zero.
///
/// Linearizable. A dequeue takes effect where head swings, an enqueue where tail swings; "full" and
/// "empty" are true at the moment tail was read.
/// Lock-free. A round is repeated only when head or tail moved since it was read, which is another
/// call's success, and each success costs any other call at most one round.
/// Alone: dequeue 4 accesses (3 for the last message), enqueue 5, as in the paper. After a lost
/// race the word that won it is known already, and the round is one or two accesses shorter.
///
/// Ordering
///   head load, acquire    the loads of tail and slots come after it. With the release below: the
///                         lane that moved head had seen a tail at least as new, so tail is not
///                         older here.
///   tail load, acquire    what an enqueuer wrote before enqueue (the memory behind the payload,
///                         its slot copy) is visible. The re-read of head comes after it.
///   tail swing, release   publishes that; every change of tail is a read-modify-write, so whoever
///                         reads any later tail has it too. On failure it acquires: its value is
///                         the next round's tail.
///   head swing, release   the slot was read before: an enqueuer that sees the new head may
///                         overwrite the slot. On failure it acquires, as the load.
///   slots, relaxed        a slot is read after an acquired tail newer than its message, so at
///                         least that message is seen; if a later one, head has moved and its swing
///                         fails.
///
/// Assumed: no lane sleeps through a multiple of 2^32 messages between a read and its swing.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>
#include <string>

namespace quarry {

/// A number and a value in one word, number above.
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

  /// Where the queue lives; the caller's. head and tail are on lines of their own.
  struct storage {
    alignas(64) std::uint32_t head;
    alignas(64) std::uint64_t tail;
    alignas(64) std::uint64_t slots[Capacity];
  };

  bounded_fifo() = default;
  /// A view; may be made before its memory exists.
  QUARRY_DEVICE explicit bounded_fifo(storage* where) : at_(where) {}

  /// Makes it empty: the share of one lane out of `lanes`; nobody else may use it yet. It looks as
  /// if the numbers up to `first` had come and gone; tests start shortly before numbers wrap.
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes,
                                std::uint32_t first = Capacity) const;

  /// Returns false where the queue was full.
  QUARRY_DEVICE bool enqueue(std::uint32_t value) const;

  /// Returns false where the queue was empty; `value` is then untouched.
  QUARRY_DEVICE bool dequeue(std::uint32_t& value) const;

  // The rest is for quiescent queues.

  QUARRY_DEVICE std::uint32_t size() const {
    return fifo_message::unpack(at_->tail).number + 1 - at_->head;
  }

  /// Calls visit(value) for every value, oldest first.
  template <class Visit>
  void visit(Visit&& visit) const;

  /// Empty where the invariants hold, else what is wrong.
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
  QUARRY_DEVICE void keep(fifo_message newest) const;

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
    keep(newest);
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

// Copies the newest message to its slot, unless somebody has.
template <std::uint32_t Capacity>
QUARRY_DEVICE void bounded_fifo<Capacity>::keep(fifo_message newest) const {
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
    // The slot of the newest message may have received it ahead of time.
    if (found == expected || (back == Capacity && found == newest)) continue;
    return "fifo: slot " + std::to_string(expected % Capacity) + " holds message " +
           std::to_string(found) + " where " + std::to_string(expected) + " belongs";
  }
  return {};
}

}  // namespace quarry
