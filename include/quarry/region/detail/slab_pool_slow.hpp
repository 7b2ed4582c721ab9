// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Slow paths of slab_pool: refills, full and empty slabs, large objects.
/// Part of definitions.hpp.

#include <quarry/region/detail/slab_pool.hpp>

namespace quarry {

// ---- small objects ------------------------------------------------------------------------------

template <slab_geometry Geometry, trie_node_source Nodes>
void* slab_pool<Geometry, Nodes>::allocate_slow(unsigned units) {
  size_class* c = make_class(units);
  if (c == nullptr || (!next_current(*c) && (!refill(*c) || !next_current(*c)))) return nullptr;
  return fill(*c) != 0 ? pop(*c) : allocate_here(*c);
}

template <slab_geometry Geometry, trie_node_source Nodes>
size_class* slab_pool<Geometry, Nodes>::make_class(unsigned units) {
  class_block*& block = blocks_[(units - 1) / class_block::classes];
  if (block == &no_classes) {
    void* memory = source_->take_metadata(sizeof(class_block));
    if (memory == nullptr) return nullptr;
    block = std::construct_at(static_cast<class_block*>(memory));
  }
  size_class& c = class_of(units);
  if (c.units == 0) {
    c.units = static_cast<std::uint16_t>(units);
    c.group = static_cast<std::uint16_t>(Geometry.group_of(units));
  }
  return &c;
}

/// Ensures that the current slab has a free slot. False: no slab of the class has one.
template <slab_geometry Geometry, trie_node_source Nodes>
bool slab_pool<Geometry, Nodes>::next_current(size_class& c) {
  if (c.current != no_slab && table_.links(c.current).free != 0) return true;
  const slab_number n = c.head;
  if (n == no_slab) return false;
  list(table_, c).unlink(n);
  if (is_empty(n) && table_.links(first_of_group(n)).busy++ == 0) c.empty_slabs -= c.group;
  c.current = n;
  return true;
}

template <slab_geometry Geometry, trie_node_source Nodes>
void* slab_pool<Geometry, Nodes>::allocate_here(size_class& c) {
  if (c.top != c.floor) return pop(c);
  if (!next_current(c)) return nullptr;
  std::uint64_t& free = table_.links(c.current).free;
  const auto unit = static_cast<unsigned>(std::countr_zero(free));
  table_.live(c.current) |= free & (~free + 1);
  free &= free - 1;
  ++c.taken;
  return table_.address(c.current) + unit * Geometry.slot;
}

/// Moves free slots of the current slab to the empty magazine, the lowest address on top. Returns
/// their number; 0: the class has no magazine.
template <slab_geometry Geometry, trie_node_source Nodes>
unsigned slab_pool<Geometry, Nodes>::fill(size_class& c) {
  if (c.limit == nullptr) return 0;
  std::uint64_t& free = table_.links(c.current).free;
  std::byte* base = table_.address(c.current);
  const unsigned slots =
      std::min(static_cast<unsigned>(std::popcount(free)), magazine_size(c.units) / 2);
  for (unsigned i = slots; i > 0; --i) {
    c.floor[i - 1] = base + static_cast<unsigned>(std::countr_zero(free)) * Geometry.slot;
    free &= free - 1;
  }
  c.taken += slots;
  c.top = c.floor + slots;
  return slots;
}

/// Called if the magazine of the class is full or does not exist.
template <slab_geometry Geometry, trie_node_source Nodes>
region_status slab_pool<Geometry, Nodes>::deallocate_slow(size_class& c, void* p) {
  if (make_room(c))
    *c.top++ = p;
  else
    put_back(c, p);
  return region_status::ok;
}

/// Ensures that the magazine has a free place. False: memory for a magazine is missing.
template <slab_geometry Geometry, trie_node_source Nodes>
bool slab_pool<Geometry, Nodes>::make_room(size_class& c) {
  if (c.limit == nullptr) {
    if (has_no_magazines_) return false;
    const unsigned size = magazine_size(c.units);
    c.floor = c.top = static_cast<void**>(source_->take_metadata(size * sizeof(void*)));
    if (c.floor == nullptr) return false;
    c.limit = c.floor + size;
    return true;
  }
  flush(c, magazine_size(c.units) / 2);
  return true;
}

/// Returns the oldest addresses of the magazine to their slabs.
template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::flush(size_class& c, std::uint64_t how_many) {
  for (std::uint64_t i = 0; i < how_many; ++i) put_back(c, c.floor[i]);
  c.top = std::copy(c.floor + how_many, c.top, c.floor);
}

/// Frees a slot that is neither free nor live, and moves its slab to the list it belongs to.
template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::put_back(size_class& c, void* p) {
  const std::uintptr_t offset = table_.offset_of(p);
  const slab_number n = table_.slab_at(offset);
  std::uint64_t& free = table_.links(n).free;
  const bool was_full = free == 0;
  free |= std::uint64_t{1} << unit_of(offset);
  --c.taken;
  if (n == c.current) return;
  const bool empty = is_empty(n);
  if (!was_full && !empty) return;
  if (!empty) return list(table_, c).push_front(n);
  if (!was_full) list(table_, c).unlink(n);
  list(table_, c).push_back(n);
  const slab_number first = first_of_group(n);
  if (--table_.links(first).busy != 0) return;
  c.empty_slabs += c.group;
  if (c.empty_slabs > kept_slabs && !keeps_empty_groups_) drop_group(c, first);
}

template <slab_geometry Geometry, trie_node_source Nodes>
bool slab_pool<Geometry, Nodes>::refill(size_class& c) {
  const slab_run run = take_slabs(c.group, kept_slabs / c.group * c.group, 1);
  if (run) format(c, run);
  return static_cast<bool>(run);
}

template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::format(size_class& c, slab_run run) {
  c.slabs += run.count;
  c.empty_slabs += run.count;
  for (slab_number n = run.first; n < run.end(); ++n) {
    table_.units(n) = c.units;
    table_.live(n) = 0;
    slab_links& l = table_.links(n);
    l.place = static_cast<std::uint8_t>((n - run.first) % c.group);
    l.busy = 0;
    l.free = Geometry.starts(c.units, c.group, l.place);
    if (l.free != 0) list(table_, c).push_back(n);
  }
  table_.note_units(run);
}

/// Moves an empty group to the free runs. Requires: no slab of the group is current or has a used
/// slot.
template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::drop_group(size_class& c, slab_number first) {
  const slab_run run{first, c.group};
  for (slab_number n = run.first; n < run.end(); ++n) {
    if (table_.links(n).free != 0) list(table_, c).unlink(n);
    table_.units(n) = slab_units::none;
  }
  c.slabs -= c.group;
  c.empty_slabs -= c.group;
  runs_.insert(run);
  source_->slabs_freed(run.count);
}

/// Moves the current slab to the list if it is empty.
template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::retire_current(size_class& c) {
  const slab_number n = c.current;
  if (n == no_slab || !is_empty(n)) return;
  c.current = no_slab;
  list(table_, c).push_back(n);
  if (--table_.links(first_of_group(n)).busy == 0) c.empty_slabs += c.group;
}

/// Moves one empty group to the free runs. False: the class has none.
template <slab_geometry Geometry, trie_node_source Nodes>
bool slab_pool<Geometry, Nodes>::give_back(size_class& c) {
  // Empty slabs are at the end of the list.
  for (slab_number n = c.tail; n != no_slab && c.empty_slabs != 0; n = table_.links(n).prev) {
    const slab_number first = first_of_group(n);
    if (table_.links(first).busy == 0) return drop_group(c, first), true;
  }
  return false;
}

// ---- large objects ------------------------------------------------------------------------------

template <slab_geometry Geometry, trie_node_source Nodes>
void* slab_pool<Geometry, Nodes>::allocate(std::size_t n, std::size_t alignment) {
  if (!std::has_single_bit(alignment) ||
      reinterpret_cast<std::uintptr_t>(table_.base()) % alignment != 0)
    return nullptr;
  if (alignment <= Geometry.slot) return allocate(n);
  if (n == 0 || n > table_.size()) return nullptr;
  // A group starts at a slab boundary, so slots whose size is a multiple of the alignment are
  // aligned.
  if (alignment > Geometry.slab)
    return allocate_large(n, static_cast<slab_number>(alignment / Geometry.slab));
  return allocate(align_up(n, alignment));
}

template <slab_geometry Geometry, trie_node_source Nodes>
void* slab_pool<Geometry, Nodes>::allocate_large(std::size_t n, slab_number alignment) {
  if (n == 0 || n > table_.size()) return nullptr;
  const auto span = static_cast<slab_number>(ceil_div(n, Geometry.slab));
  slab_number first = no_slab;
  if (span <= largest_kept && alignment == 1 && waiting_[span] != no_slab) {
    first = waiting_[span];
    waiting_[span] = table_.links(first).next;
    waiting_slabs_ -= span;
  } else {
    const slab_run run = take_slabs(span, span, alignment);
    if (!run) return nullptr;
    first = run.first;
  }
  table_.units(first) = slab_units::large;
  table_.note_units({first, 1});
  table_.live(first) = 1;
  table_.links(first).count = span;
  ++large_objects_;
  large_slabs_ += span;
  return table_.address(first);
}

template <slab_geometry Geometry, trie_node_source Nodes>
region_status slab_pool<Geometry, Nodes>::deallocate_large(slab_number first) {
  const auto span = static_cast<slab_number>(table_.links(first).count);
  --large_objects_;
  large_slabs_ -= span;
  if (span <= largest_kept && waiting_slabs_ + span <= kept_large) {
    table_.links(first).next = waiting_[span];
    waiting_[span] = first;
    waiting_slabs_ += span;
    return region_status::ok;
  }
  table_.units(first) = slab_units::none;
  runs_.insert({first, span});
  source_->slabs_freed(span);
  return region_status::ok;
}

template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::empty_waiting() {
  for (slab_number span = 1; span <= largest_kept; ++span)
    while (waiting_[span] != no_slab) {
      const slab_number first = waiting_[span];
      waiting_[span] = table_.links(first).next;
      table_.units(first) = slab_units::none;
      runs_.insert({first, span});
    }
  waiting_slabs_ = 0;
}

// ---- slabs --------------------------------------------------------------------------------------

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run slab_pool<Geometry, Nodes>::take_slabs(slab_number least, slab_number wanted,
                                                slab_number alignment) {
  const auto take = [&] {
    return wanted > least ? runs_.take_multiple(least, wanted) : runs_.take(least, alignment);
  };
  if (slab_run run = take()) return run;
  const std::uint64_t room = std::uint64_t{least} + (alignment - 1);
  if (room > table_.count()) return {};
  const auto enough = static_cast<slab_number>(room);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (const slab_run got = source_->more_slabs(enough, std::max(enough, wanted))) {
      runs_.insert(got);
      return take();
    }
    // Slabs that reclaim() frees may join into a run that is long enough, here or at the source.
    if (attempt == 0) reclaim();
    if (slab_run run = take()) return run;
  }
  return {};
}

template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::reclaim() {
  empty_waiting();
  for (class_block* block : blocks_) {
    if (block == &no_classes) continue;
    for (size_class& c : block->of) {
      if (c.pinned) continue;
      flush(c, c.waiting());
      retire_current(c);
      while (give_back(c)) continue;
    }
  }
}

template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::discard() {
  for (class_block* block : blocks_) {
    if (block == &no_classes) continue;
    for (const size_class& c : block->of)
      if (c.floor != nullptr)
        source_->give_metadata(c.floor, magazine_size(c.units) * sizeof(void*));
    source_->give_metadata(block, sizeof(class_block));
  }
  forget();
}

template <slab_geometry Geometry, trie_node_source Nodes>
void slab_pool<Geometry, Nodes>::forget() {
  for (class_block*& block : blocks_) block = &no_classes;
  for (slab_number& head : waiting_) head = no_slab;
  waiting_slabs_ = 0;
  large_objects_ = large_slabs_ = 0;
  runs_.forget();
}

// ---- object queries ------------------------------------------------------------------------

template <slab_geometry Geometry, trie_node_source Nodes>
slab_number slab_pool<Geometry, Nodes>::slab_of_object(const void* p) const {
  if (!table_.contains(p)) return no_slab;
  const std::uintptr_t offset = table_.offset_of(p);
  const slab_number n = table_.slab_at(offset);
  if (table_.owner(n) != stamp_ || offset % Geometry.slot != 0) return no_slab;
  return (table_.live(n) >> unit_of(offset) & 1) != 0 ? n : no_slab;
}

template <slab_geometry Geometry, trie_node_source Nodes>
std::size_t slab_pool<Geometry, Nodes>::usable_size(const void* p) const {
  const slab_number n = slab_of_object(p);
  if (n == no_slab) return 0;
  const unsigned units = table_.units(n);
  return units == slab_units::large ? table_.links(n).count * Geometry.slab : units * Geometry.slot;
}

template <slab_geometry Geometry, trie_node_source Nodes>
bool slab_pool<Geometry, Nodes>::resize(void* p, std::size_t n) {
  const slab_number first = slab_of_object(p);
  if (first == no_slab || n == 0 || n > table_.size()) return false;
  if (const unsigned units = table_.units(first); units != slab_units::large) {
    // The object stays if it uses more than half of its slot.
    const std::size_t size = units * Geometry.slot;
    return n <= size && (n > size / 2 || units == 1);
  }
  const auto has = static_cast<slab_number>(table_.links(first).count);
  const auto wants = static_cast<slab_number>(ceil_div(n, Geometry.slab));
  if (wants > has) {
    const slab_run beside = runs_.starting_at(first + has);
    if (beside.count < wants - has) return false;
    runs_.take_at({first + has, wants - has});
  } else if (wants < has) {
    if (n <= Geometry.most_units() * Geometry.slot)
      return false;  // a small object now: it moves to a slot
    runs_.insert({first + wants, has - wants});
  }
  table_.links(first).count = wants;
  large_slabs_ += wants;
  large_slabs_ -= has;
  if (wants < has) source_->slabs_freed(has - wants);
  return true;
}

template <slab_geometry Geometry, trie_node_source Nodes>
bool slab_pool<Geometry, Nodes>::allocate_bulk(std::size_t n, std::span<void*> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = allocate(n);
    if (out[i] != nullptr) continue;
    while (i > 0) {
      --i;
      deallocate(out[i]);
      out[i] = nullptr;
    }
    return false;
  }
  return true;
}

}  // namespace quarry
