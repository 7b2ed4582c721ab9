// SPDX-License-Identifier: Apache-2.0
#pragma once
/// size_class: the state of one object size in a pool, in one cache line.
///
///   magazine   a stack of slot addresses that are ready to be allocated
///   current    the slab that refills the magazine; it is in no list
///   list       slabs with a free slot; those with a used slot precede empty ones
///   (full)     slabs without a free slot are in no list; deallocate finds them by address
///
/// Size classes are allocated in blocks of 32, when the first object of such a size is requested.
/// Until then the pool points at `no_classes`, whose magazines are empty: the fast path needs no
/// null check.

#include <quarry/region/detail/slab_table.hpp>

namespace quarry {

struct alignas(64) size_class {
  void** top = nullptr;     // one past the last address in the magazine
  void** floor = nullptr;   // start of the magazine
  void** limit = nullptr;   // end of the magazine
  std::uint64_t taken = 0;  // slots of live objects and in the magazine
  slab_number current = no_slab;
  slab_number head = no_slab;
  slab_number tail = no_slab;
  slab_number slabs = 0;        // in groups of this class
  slab_number empty_slabs = 0;  // of those, slabs in groups without a used slot
  std::uint16_t units = 0;
  std::uint16_t group = 0;  // slabs in a group
  bool pinned = false;      // its empty slabs are a reserve and not reclaimed

  std::uint64_t waiting() const { return static_cast<std::uint64_t>(top - floor); }
};
static_assert(sizeof(size_class) == 64);

struct class_block {
  static constexpr unsigned classes = 32;
  size_class of[classes];
};

/// The classes of all pools before their first object. Never written.
inline class_block no_classes{};

/// The slab list of a class.
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
