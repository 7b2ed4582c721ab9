// SPDX-License-Identifier: Apache-2.0
#pragma once
/// published_fifo: XMalloc's queue as published by Huang et al. (2013), Figs. 7 to 9, with its
/// defects, which the explorer must detect. concurrent/bounded_fifo.hpp is the repaired form and
/// explains the defects.
///
/// Four switches select repairs; the defaults are the published form. The paper does not state
/// whether one load or two copy a message, so both forms exist. With all repairs the class is
/// equivalent to bounded_fifo, so a form that lacks one repair shows the defect that this repair
/// removes.

#include <quarry/concurrent/bounded_fifo.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>
#include <string>

namespace quarry::mutants {

struct fifo_form {
  bool at_least = false;    // the queue is full if held >= Capacity, instead of ==
  bool head_again = false;  // enqueue loads head again before it returns false
  bool whole_loads = true;  // one 64-bit load reads a message, instead of two 32-bit loads
  bool head_first = true;   // head is loaded before tail
};

inline constexpr fifo_form as_published{};
inline constexpr fifo_form in_halves{.whole_loads = false};
inline constexpr fifo_form repaired{.at_least = true, .head_again = true};
inline constexpr fifo_form repaired_but_equality{.at_least = false, .head_again = true};
inline constexpr fifo_form repaired_but_old_head{.at_least = true, .head_again = false};
inline constexpr fifo_form repaired_but_halves{
    .at_least = true, .head_again = true, .whole_loads = false};
inline constexpr fifo_form repaired_but_tail_first{
    .at_least = true, .head_again = true, .head_first = false};

template <std::uint32_t Capacity, fifo_form Form = as_published>
class published_fifo {
  using sound = bounded_fifo<Capacity>;

 public:
  static constexpr std::uint32_t capacity = Capacity;
  using storage = typename sound::storage;

  explicit published_fifo(storage* where) : at_(where) {}

  void initialise(std::uint64_t lane, std::uint64_t lanes, std::uint32_t first = Capacity) const {
    sound(at_).initialise(lane, lanes, first);
  }

  // Fig. 9
  bool enqueue(std::uint32_t value) const {
    fifo_message tail;
    fifo_message new_tail;
    do {
      std::uint32_t head_num = 0;
      read_both(head_num, tail);
      const std::uint32_t held = tail.number - head_num + 1;
      if (Form.at_least ? held >= Capacity : held == Capacity) {
        if (!Form.head_again || head().load(simt::acquire) == head_num) return false;
        continue;
      }
      auto slot = message_slot(tail.number);
      const fifo_message old_message = read(slot);
      if (old_message.number + Capacity == tail.number) {
        std::uint64_t expected = old_message.packed();
        slot.compare_exchange(expected, tail.packed(), simt::acq_rel);
      }
      new_tail = {tail.number + 1, value};
      if (swing(tail, new_tail)) return true;
    } while (true);
  }

  // Fig. 8
  bool dequeue(std::uint32_t& value) const {
    std::uint32_t head_num = 0;
    do {
      fifo_message tail;
      read_both(head_num, tail);
      if (tail.number - head_num + 1 == 0) return false;
      value = head_num == tail.number ? tail.payload : read(message_slot(head_num)).payload;
    } while (!head().compare_exchange(head_num, head_num + 1, simt::acq_rel));
    return true;
  }

  std::string check_invariants() const { return sound(at_).check_invariants(); }

 private:
  simt::atomic_ref<std::uint32_t> head() const {
    return simt::atomic_ref<std::uint32_t>(at_->head);
  }
  simt::atomic_ref<std::uint64_t> tail() const {
    return simt::atomic_ref<std::uint64_t>(at_->tail);
  }
  simt::atomic_ref<std::uint64_t> message_slot(std::uint32_t number) const {
    return simt::atomic_ref<std::uint64_t>(at_->slots[number % Capacity]);
  }

  // Two 64-bit loads that contribute one half each are equivalent to two 32-bit loads.
  static fifo_message read(simt::atomic_ref<std::uint64_t> from) {
    fifo_message m = fifo_message::unpack(from.load(simt::acquire));
    if (!Form.whole_loads) m.payload = fifo_message::unpack(from.load(simt::acquire)).payload;
    return m;
  }
  void read_both(std::uint32_t& head_num, fifo_message& newest) const {
    if (Form.head_first) head_num = head().load(simt::acquire);
    newest = read(tail());
    if (!Form.head_first) head_num = head().load(simt::acquire);
  }
  bool swing(fifo_message from, fifo_message to) const {
    std::uint64_t expected = from.packed();
    return tail().compare_exchange(expected, to.packed(), simt::acq_rel);
  }

  storage* at_;
};

}  // namespace quarry::mutants
