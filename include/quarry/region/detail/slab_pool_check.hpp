// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Statistics and invariants of slab_pool, and the restoration of slabs from a snapshot.
/// Part of definitions.hpp.

#include <quarry/region/detail/slab_pool.hpp>

namespace quarry {

template <slab_geometry Geometry, trie_node_source Nodes>
pool_statistics slab_pool<Geometry, Nodes>::statistics() const {
  pool_statistics s;
  s.objects = large_objects_;
  s.live_bytes = large_slabs_ * Geometry.slab;
  s.full_slabs = large_slabs_;
  s.empty_slabs = waiting_slabs_;
  s.free_slabs = runs_.slabs();
  s.free_runs = runs_.runs();
  for (const class_block* block : blocks_) {
    if (block == &no_classes) continue;
    for (const size_class& c : block->of) {
      s.objects += c.taken - c.waiting();
      s.live_bytes += (c.taken - c.waiting()) * c.units * Geometry.slot;
      s.empty_slabs += c.empty_slabs;
      std::uint64_t partial = c.current != no_slab && table_.links(c.current).free != 0 ? 1 : 0;
      for (slab_number n = c.head; n != no_slab; n = table_.links(n).next)
        if (table_.links(first_of_group(n)).busy != 0) ++partial;
      s.partial_slabs += partial;
      s.full_slabs += c.slabs - c.empty_slabs - partial;
    }
  }
  return s;
}

template <slab_geometry Geometry, trie_node_source Nodes>
std::string slab_pool<Geometry, Nodes>::check_invariants(std::span<const slab_run> scope) const {
  if (std::string fault = runs_.check_invariants(); !fault.empty()) return fault;
  const auto at = [](slab_number n) { return "slab " + std::to_string(n); };
  std::uint64_t large = 0, large_slabs = 0, waiting = 0, free = 0, grouped = 0;
  std::uint64_t taken = 0, live = 0, listed = 0, empty = 0;
  for (const slab_run part : scope)
    for (slab_number n = part.first; n < part.end();) {
      if (table_.owner(n) != stamp_) return at(n) + " is held, but the table names another owner";
      const unsigned units = table_.units(n);
      auto length = static_cast<slab_number>(table_.links(n).count);
      if (const unsigned all = table_.chunk_of(n).units();
          table_.live(n) != 0 && all != 0 && all != units)
        return at(n) + " has another size than its chunk";
      if (units == slab_units::run) {
        free += length;
      } else if (units == slab_units::large) {
        if (table_.live(n) > 1) return at(n) + " holds more than its large object";
        (table_.live(n) == 1 ? large_slabs : waiting) += length;
        large += table_.live(n);
      } else if (units == 0 || units > Geometry.most_units() || !class_is_made(units)) {
        return at(n) + " has a size that the pool has no class for";
      } else {
        const size_class& c = class_of(units);
        length = c.group;
        grouped += length;
        unsigned busy = 0;
        for (unsigned i = 0; i < c.group; ++i) {
          const slab_links& l = table_.links(n + i);
          const std::uint64_t bits = table_.live(n + i);
          if (table_.owner(n + i) != stamp_ || table_.units(n + i) != units || l.place != i)
            return at(n + i) + " does not fit its group";
          const std::uint64_t starts = Geometry.starts(c.units, c.group, i);
          if ((l.free & bits) != 0 || ((l.free | bits) & ~starts) != 0)
            return at(n + i) + " has bits that are not its slots";
          live += static_cast<unsigned>(std::popcount(bits));
          taken += static_cast<unsigned>(std::popcount(starts & ~l.free));
          busy += l.free != starts || n + i == c.current ? 1u : 0u;
          listed += l.free != 0 && n + i != c.current ? 1u : 0u;
        }
        if (busy != table_.links(n).busy) return at(n) + " miscounts the busy slabs of its group";
        if (busy == 0) empty += c.group;
      }
      if (length == 0 || length > part.end() - n) return at(n) + " reaches beyond what is held";
      n += length;
    }
  std::uint64_t class_taken = 0, class_waiting = 0, class_slabs = 0, in_lists = 0, class_empty = 0;
  for (const class_block* block : blocks_)
    for (const size_class& c : block->of) {
      class_taken += c.taken;
      class_waiting += c.waiting();
      for (void** p = c.floor; p != c.top; ++p) {
        const std::uintptr_t offset = table_.offset_of(*p);
        const slab_number n = table_.slab_at(offset);
        if (table_.owner(n) != stamp_ || table_.units(n) != c.units ||
            ((table_.links(n).free | table_.live(n)) >> unit_of(offset) & 1) != 0)
          return "a magazine holds an address that is no slot, or not taken";
      }
      class_slabs += c.slabs;
      class_empty += c.empty_slabs;
      slab_number before = no_slab;
      for (slab_number n = c.head; n != no_slab; before = n, n = table_.links(n).next, ++in_lists) {
        const slab_links& l = table_.links(n);
        if (table_.owner(n) != stamp_ || table_.units(n) != c.units || l.free == 0 ||
            l.prev != before)
          return at(n) + " is in a list where it does not belong";
        if (in_lists > grouped) return "a list of slabs does not end";
      }
      if (c.tail != before) return "a list of slabs does not end where it should";
    }
  if (large != large_objects_ || large_slabs != large_slabs_ || waiting != waiting_slabs_)
    return "the large objects do not add up";
  if (free != runs_.slabs()) return "the free slabs do not add up";
  if (grouped != class_slabs || empty != class_empty)
    return "the slabs of the classes do not add up";
  if (taken != class_taken) return "the slots taken do not add up";
  if (live + class_waiting != taken)
    return "slots that are neither free nor live are in no magazine";
  if (listed != in_lists) return "a slab with a free slot is in no list";
  return {};
}

template <slab_geometry Geometry, trie_node_source Nodes>
region_status slab_pool<Geometry, Nodes>::adopt(slab_run scope) {
  table_.note_units(scope);
  for (slab_number n = scope.first; n < scope.end();) {
    const unsigned units = table_.units(n);
    const auto count = static_cast<slab_number>(table_.links(n).count);
    if (units == slab_units::run) {
      table_.units(n) = table_.units(n + count - 1) = slab_units::none;
      runs_.insert({n, count});
      n += count;
      continue;
    }
    if (units == slab_units::large) {
      ++large_objects_;
      large_slabs_ += count;
      n += count;
      continue;
    }
    size_class* c = make_class(units);
    if (c == nullptr) return region_status::out_of_memory;
    c->slabs += c->group;
    std::uint8_t& busy = table_.links(n).busy;
    busy = 0;
    for (unsigned i = 0; i < c->group; ++i) {
      const std::uint64_t live = table_.live(n + i);
      c->taken += static_cast<unsigned>(std::popcount(live));
      if (live != 0) ++busy;
      if (table_.links(n + i).free == 0) continue;
      if (live != 0)
        list(table_, *c).push_front(n + i);
      else
        list(table_, *c).push_back(n + i);
    }
    if (busy == 0) c->empty_slabs += c->group;
    n += c->group;
  }
  return region_status::ok;
}

}  // namespace quarry
