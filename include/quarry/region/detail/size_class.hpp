// SPDX-License-Identifier: Apache-2.0
#pragma once
/// size_class: what a pool knows about the objects of one size, in one cache line.
///
///   magazine   slots ready to be handed out: a stack of addresses, in a line of its own
///   current    the slab that the magazine is filled from; in no list
///   list       slabs with a free slot, those that hold an object before those that do not
///   (full)     slabs without a free slot: in no list, found again by the address that is freed
///
/// A pool has up to 8 slabs' worth of sizes, so classes come in blocks of 32, made when the first
/// object of such a size is asked for. Until then the pool points at a block of classes that have
/// nothing to give, so that the fast path asks no question.

#include <quarry/region/detail/slab_table.hpp>

namespace quarry {

struct alignas(64) size_class {
  void** top = nullptr;     // of the magazine: one past the last address
  void** floor = nullptr;   // its first place
  void** limit = nullptr;   // one past its last place
  std::uint64_t taken = 0;  // slots in objects and in the magazine
  slab_number current = no_slab;
  slab_number head = no_slab;
  slab_number tail = no_slab;
  slab_number slabs = 0;        // in groups of this class
  slab_number empty_slabs = 0;  // of those, in groups without a slot taken
  std::uint16_t units = 0;
  std::uint16_t group = 0;  // slabs in a group
  bool pinned = false;      // its empty slabs are a reserve: not reclaimed

  std::uint64_t waiting() const { return static_cast<std::uint64_t>(top - floor); }
};
static_assert(sizeof(size_class) == 64);

struct class_block {
  static constexpr unsigned classes = 32;
  size_class of[classes];
};

/// All classes of all pools before their first object. Never written.
inline class_block no_classes{};

/// The list of a class.
template <slab_geometry Geometry>
class slab_list {
 public:
  slab_list(const slab_table_view<Geometry>& table, size_class& c) : table_(&table), class_(&c) {}

  void push_front(slab_number n) {
    slab_links& r = table_->links(n);
    r.prev = no_slab;
    r.next = class_->head;
    (r.next == no_slab ? class_->tail : table_->links(r.next).prev) = n;
    class_->head = n;
  }
  void push_back(slab_number n) {
    slab_links& r = table_->links(n);
    r.next = no_slab;
    r.prev = class_->tail;
    (r.prev == no_slab ? class_->head : table_->links(r.prev).next) = n;
    class_->tail = n;
  }
  void unlink(slab_number n) {
    const slab_links& r = table_->links(n);
    (r.prev == no_slab ? class_->head : table_->links(r.prev).next) = r.next;
    (r.next == no_slab ? class_->tail : table_->links(r.next).prev) = r.prev;
  }

 private:
  const slab_table_view<Geometry>* table_;
  size_class* class_;
};

}  // namespace quarry
