// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/lease_table.hpp"

#include <algorithm>

namespace quarry::cluster::detail {

std::uint64_t lease_table::next_lease_slots(rid region, unsigned units) {
  magazine& m = magazine_of(region, units);
  if (m.misses < min_misses) return ++m.misses, 0;
  const std::uint64_t max =
      std::clamp<std::uint64_t>(max_lease_bytes / (units * unit), 1, max_lease_slots);
  const std::uint64_t now = std::min(m.next_lease, max);
  m.next_lease = std::min(2 * m.next_lease, max);
  m.low_watermark = now / 2;
  return now;
}

void lease_table::add(rid region, unsigned units, std::uint64_t base, std::uint64_t mask) {
  magazine& m = magazine_of(region, units);
  slab& s = slabs_[base];
  if (s.home != &m) {  // The slab is new, or had another size class before.
    if (s.listed && fault_ != fault::keep_stale_slab_list) std::erase(s.home->available, &s);
    s = {};
    s.base = base;
    s.home = &m;
    m.slabs.push_back(base);
  }
  m.free_slots += static_cast<unsigned>(std::popcount(mask & ~s.leased));
  s.leased |= mask;
  s.free |= mask;
  list(s);
}

std::size_t lease_table::size_of(const void* p) const {
  std::uint64_t bit = 0;
  const slab* s = find(p, bit);
  return s != nullptr && (s->free & bit) == 0 ? s->home->units * unit : 0;
}

rid lease_table::region_of(const void* p) const {
  std::uint64_t bit = 0;
  const slab* s = find(p, bit);
  return s != nullptr ? s->home->region : root;
}

bool lease_table::has_surplus(const void* p) const {
  std::uint64_t bit = 0;
  const slab* s = find(p, bit);
  return s != nullptr && s->home->free_slots > max_free_slots;
}

void lease_table::revoke(const void* p) {
  std::uint64_t bit = 0;
  slab* s = find(p, bit);
  if (s == nullptr) return;
  if ((s->free & bit) != 0) --s->home->free_slots;
  s->leased &= ~bit;
  s->free &= ~bit;
}

lease_table::slab* lease_table::slab_of(const magazine& m, std::uint64_t base) {
  const auto it = slabs_.find(base);
  return it != slabs_.end() && it->second.home == &m ? &it->second : nullptr;
}

void lease_table::drop_region(rid region) {
  for (auto it = magazines_.begin(); it != magazines_.end();) {
    magazine& m = it->second;
    if (m.region != region) {
      ++it;
      continue;
    }
    for (const std::uint64_t base : m.slabs)
      if (slab_of(m, base) != nullptr) slabs_.erase(base);
    if (last_ == &m) last_ = nullptr;
    it = magazines_.erase(it);
  }
}

void lease_table::release_objects(rid region, const visit_slots& visit) {
  for (auto& [name, m] : magazines_) {
    if (m.region != region) continue;
    std::erase_if(m.slabs, [&, &home = m](std::uint64_t base) {
      slab* s = slab_of(home, base);
      if (s == nullptr) return true;
      const std::uint64_t live = s->leased & ~s->free;
      s->leased = s->free;
      if (live != 0) visit(base, live);
      if (s->leased != 0 || s->listed) return false;
      slabs_.erase(base);
      return true;
    });
  }
}

void lease_table::return_free_slots(const select_region& selected, std::uint64_t keep,
                                    const visit_region_slots& visit) {
  for (auto& [name, m] : magazines_) {
    if (!selected(m.region)) continue;
    for (auto s = m.available.begin(); s != m.available.end() && m.free_slots > keep; ++s) {
      const std::uint64_t returned = (*s)->free;
      if (returned == 0) continue;
      visit(m.region, (*s)->base, returned);
      m.free_slots -= static_cast<unsigned>(std::popcount(returned));
      (*s)->leased &= ~returned;
      (*s)->free = 0;
    }
  }
}

}  // namespace quarry::cluster::detail
