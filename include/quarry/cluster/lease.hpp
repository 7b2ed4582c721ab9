// SPDX-License-Identifier: Apache-2.0
#pragma once
/// lease_book: the slots that a worker has on loan, and which of them are free.
///
///   slab      address -> which of its slots are ours, and which of those are free
///   magazine  (region, units) -> slabs with free slots; how much to ask for next
///
/// A slot is free here, or a living object of the worker's program; what is not ours is in neither.
/// take and put cost a hash lookup each, none when the magazine was the last one used.

#include <quarry/cluster/detail/fault.hpp>
#include <quarry/cluster/id.hpp>
#include <quarry/region/geometry.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace quarry::cluster {

class lease_book {
 public:
  static constexpr std::size_t largest = 4096;         // bytes of an object that is leased
  static constexpr unsigned patience = 2;              // objects before the first lease
  static constexpr std::uint64_t first_lease = 32;     // objects
  static constexpr std::uint64_t most_objects = 4096;  // of a lease
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  explicit lease_book(detail::fault fault = detail::fault::none) : fault_(fault) {}

  static unsigned units_of(std::size_t size) {
    return static_cast<unsigned>((size + unit - 1) / unit);
  }

  /// A free slot, an object from now on; nullptr: there is none.
  void* take(rid region, unsigned units) {
    magazine& m = magazine_of(region, units);
    while (!m.open.empty()) {
      slab& s = *m.open.back();
      if (s.free != 0) {
        const auto bit = static_cast<unsigned>(std::countr_zero(s.free));
        s.free &= s.free - 1;
        --m.spare;
        return reinterpret_cast<void*>(s.base + bit * unit);  // NOLINT
      }
      s.listed = false;
      m.open.pop_back();
    }
    return nullptr;
  }

  /// So few are left that it is time to ask for more, and nobody has.
  bool runs_low(rid region, unsigned units) {
    const magazine& m = magazine_of(region, units);
    return m.spare < m.low && !m.awaited;
  }
  /// More was asked for, and will be added, or not.
  void await(rid region, unsigned units, bool comes) { magazine_of(region, units).awaited = comes; }
  bool is_awaited(rid region, unsigned units) { return magazine_of(region, units).awaited; }

  /// How many objects to ask for now; 0: the program has not shown that it wants many.
  std::uint64_t wish(rid region, unsigned units) {
    magazine& m = magazine_of(region, units);
    if (m.asked < patience) return ++m.asked, 0;
    const std::uint64_t most =
        std::clamp<std::uint64_t>(most_bytes / (units * unit), 1, most_objects);
    const std::uint64_t now = std::min(m.next, most);
    m.next = std::min(2 * m.next, most);
    m.low = now / 2;
    return now;
  }

  void add(rid region, unsigned units, std::uint64_t base, std::uint64_t mask) {
    magazine& m = magazine_of(region, units);
    slab& s = slabs_[base];
    if (s.home != &m) {  // new here, or emptied by another magazine
      if (s.listed && fault_ != detail::fault::keep_stale_slab_list) std::erase(s.home->open, &s);
      s = {};
      s.base = base;
      s.home = &m;
      m.slabs.push_back(base);
    }
    m.spare += static_cast<unsigned>(std::popcount(mask & ~s.mine));
    s.mine |= mask;
    s.free |= mask;
    open(s);
  }

  enum class put_result { done, freed_already, not_ours };
  put_result put(void* p) {
    slab* s = nullptr;
    std::uint64_t bit = 0;
    if (!find(p, s, bit)) return put_result::not_ours;
    if ((s->free & bit) != 0) return put_result::freed_already;
    s->free |= bit;
    ++s->home->spare;
    open(*s);
    return put_result::done;
  }

  /// Bytes of a living object; 0: it is none of ours.
  std::size_t size_of(const void* p) const {
    const slab* s = nullptr;
    std::uint64_t bit = 0;
    return find(p, s, bit) && (s->free & bit) == 0 ? s->home->units * unit : 0;
  }
  rid region_of(const void* p) const {
    const slab* s = nullptr;
    std::uint64_t bit = 0;
    return find(p, s, bit) ? s->home->region : root;
  }

  /// Somebody else freed the object: the slot is not ours any more.
  void lose(const void* p) {
    slab* s = nullptr;
    std::uint64_t bit = 0;
    if (!find(p, s, bit)) return;
    if ((s->free & bit) != 0) --s->home->spare;
    s->mine &= ~bit;
    s->free &= ~bit;
  }

  /// Everything in the region, objects too.
  void drop(rid region) {
    for (auto it = magazines_.begin(); it != magazines_.end();)
      if (it->second.region == region) {
        for (const std::uint64_t base : it->second.slabs)
          if (const auto s = slabs_.find(base); s != slabs_.end() && s->second.home == &it->second)
            slabs_.erase(s);
        if (last_ == &it->second) last_ = nullptr;
        it = magazines_.erase(it);
      } else {
        ++it;
      }
  }

  /// Takes the living objects of a region out of the book: visit(slab address, mask) for each slab.
  template <class Visit>
  void release(rid region, Visit visit) {
    for (auto& entry : magazines_) {
      magazine& m = entry.second;
      if (m.region != region) continue;
      for (const std::uint64_t base : m.slabs) {
        const auto it = slabs_.find(base);
        if (it == slabs_.end() || it->second.home != &m) continue;
        slab& s = it->second;
        const std::uint64_t living = s.mine & ~s.free;
        s.mine = s.free;
        if (living != 0) visit(base, living);
      }
      std::erase_if(m.slabs, [&](std::uint64_t base) {
        const auto it = slabs_.find(base);
        if (it == slabs_.end() || it->second.home != &m) return true;
        if (it->second.mine != 0 || it->second.listed) return false;
        slabs_.erase(it);
        return true;
      });
    }
  }

  /// Takes free slots out of the book until `leave` are left in each magazine that `which` names,
  /// and calls visit(region, slab address, mask) for each slab.
  template <class Which, class Visit>
  void give_back(Which which, std::uint64_t leave, Visit visit) {
    for (auto& [name, m] : magazines_) {
      if (!which(m.region)) continue;
      for (auto s = m.open.begin(); s != m.open.end() && m.spare > leave; ++s) {
        if ((*s)->free == 0) continue;
        const std::uint64_t back = (*s)->free;
        visit(m.region, (*s)->base, back);
        m.spare -= static_cast<unsigned>(std::popcount(back));
        (*s)->mine &= ~back;
        (*s)->free = 0;
      }
    }
  }
  /// More free slots in the object's magazine than a few leases would bring.
  bool has_too_many(const void* p) const {
    const slab* s = nullptr;
    std::uint64_t bit = 0;
    return find(p, s, bit) && s->home->spare > surplus;
  }
  static constexpr std::uint64_t surplus = 2 * most_objects;

 private:
  static constexpr std::size_t unit = default_geometry.slot;
  static constexpr std::uint64_t slab_bytes = default_geometry.slab;

  struct magazine;
  struct slab {
    std::uint64_t base = 0;
    std::uint64_t mine = 0;
    std::uint64_t free = 0;
    magazine* home = nullptr;
    bool listed = false;  // in the magazine's `open`
  };
  struct magazine {
    rid region = root;
    unsigned units = 0;
    unsigned asked = 0;
    std::uint64_t next = first_lease;
    std::uint64_t spare = 0;           // free slots
    std::uint64_t low = 0;             // fewer are few
    bool awaited = false;              // more were asked for
    std::vector<slab*> open;           // all slabs with a free slot, and some without
    std::vector<std::uint64_t> slabs;  // every one that ever was here
  };
  struct key {
    rid region;
    unsigned units;
    bool operator==(const key&) const = default;
  };
  struct key_hash {
    std::size_t operator()(const key& k) const {
      return (k.region * 0x9e37'79b9'7f4a'7c15u) ^ (k.units * 0x517c'c1b7'2722'0a95u);
    }
  };

  magazine& magazine_of(rid region, unsigned units) {
    if (last_ != nullptr && last_->region == region && last_->units == units) return *last_;
    magazine& m = magazines_[{region, units}];
    m.region = region;
    m.units = units;
    last_ = &m;
    return m;
  }
  static void open(slab& s) {
    if (s.listed) return;
    s.listed = true;
    s.home->open.push_back(&s);
  }
  bool find(const void* p, slab*& s, std::uint64_t& bit) {
    const slab* found = nullptr;
    const bool is = static_cast<const lease_book*>(this)->find(p, found, bit);
    s = const_cast<slab*>(found);
    return is;
  }
  bool find(const void* p, const slab*& s, std::uint64_t& bit) const {
    const auto address = reinterpret_cast<std::uint64_t>(p);
    const auto it = slabs_.find(address & ~(slab_bytes - 1));
    if (it == slabs_.end() || address % unit != 0) return false;
    s = &it->second;
    bit = std::uint64_t{1} << address % slab_bytes / unit;
    return (s->mine & bit) != 0;
  }

  std::unordered_map<std::uint64_t, slab> slabs_;
  std::unordered_map<key, magazine, key_hash> magazines_;
  magazine* last_ = nullptr;
  detail::fault fault_;
};

}  // namespace quarry::cluster
