// SPDX-License-Identifier: Apache-2.0
#pragma once
/// lease_table: the slots that a worker leases, and which of them are free.
///
///   slab       address -> the leased slots of the slab, and which of them are free
///   magazine   (region, size class) -> slabs with free slots; the size of the next lease
///
/// Invariant: a leased slot is either free or holds a live object of this worker's program.
/// Cost: allocate() and deallocate() do one hash lookup each; allocate() does none if it uses the
/// same magazine as the call before. Sizes are counted in units of 64 bytes.

#include <quarry/cluster/detail/fault.hpp>
#include <quarry/cluster/id.hpp>
#include <quarry/region/geometry.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace quarry::cluster::detail {

class lease_table {
 public:
  static constexpr std::size_t max_object_bytes = 4096;
  static constexpr unsigned min_misses = 2;  // allocations of a class before its first lease
  static constexpr std::uint64_t first_lease_slots = 32;
  static constexpr std::uint64_t max_lease_slots = 4096;
  static constexpr std::size_t max_lease_bytes = std::size_t{1} << 20;
  /// A magazine with more free slots than this returns half of them.
  static constexpr std::uint64_t max_free_slots = 2 * max_lease_slots;

  explicit lease_table(fault f = fault::none) : fault_(f) {}

  static unsigned units_of(std::size_t bytes) {
    return static_cast<unsigned>((bytes + unit - 1) / unit);
  }

  /// Returns a free slot, which becomes a live object; nullptr if the magazine has none.
  void* allocate(rid region, unsigned units) {
    magazine& m = magazine_of(region, units);
    while (!m.available.empty()) {
      slab& s = *m.available.back();
      if (s.free != 0) {
        const auto bit = static_cast<unsigned>(std::countr_zero(s.free));
        s.free &= s.free - 1;
        --m.free_slots;
        return reinterpret_cast<void*>(s.base + bit * unit);
      }
      s.listed = false;
      m.available.pop_back();
    }
    return nullptr;
  }

  enum class free_result { freed, already_free, not_leased };
  free_result deallocate(void* p) {
    std::uint64_t bit = 0;
    slab* s = find(p, bit);
    if (s == nullptr) return free_result::not_leased;
    if ((s->free & bit) != 0) return free_result::already_free;
    s->free |= bit;
    ++s->home->free_slots;
    list(*s);
    return free_result::freed;
  }

  // ---- requests for leases ----
  /// The magazine holds few free slots, and no lease for it is pending.
  bool needs_refill(rid region, unsigned units) {
    const magazine& m = magazine_of(region, units);
    return m.free_slots < m.low_watermark && !m.pending;
  }
  void set_pending(rid region, unsigned units, bool pending) {
    magazine_of(region, units).pending = pending;
  }
  bool is_pending(rid region, unsigned units) { return magazine_of(region, units).pending; }
  /// The number of slots to request now; 0 during the first min_misses calls. Doubles with each
  /// call, up to max_lease_slots and max_lease_bytes.
  std::uint64_t next_lease_slots(rid region, unsigned units);
  /// Adds leased slots, all of them free.
  void add(rid region, unsigned units, std::uint64_t base, std::uint64_t mask);

  // ---- live objects ----
  /// The bytes of a live leased object; 0 if p is none.
  std::size_t size_of(const void* p) const;
  rid region_of(const void* p) const;
  /// The magazine of the object's slab has more than max_free_slots free slots.
  bool has_surplus(const void* p) const;

  // ---- the end of leases ----
  using visit_slots = std::function<void(std::uint64_t base, std::uint64_t mask)>;
  using select_region = std::function<bool(rid)>;
  using visit_region_slots =
      std::function<void(rid region, std::uint64_t base, std::uint64_t mask)>;
  /// Another worker freed the object: its slot is no longer leased.
  void revoke(const void* p);
  /// Ends all leases in the region, free or not.
  void drop_region(rid region);
  /// Ends the leases on the live objects of a region and visits their slots, slab by slab.
  void release_objects(rid region, const visit_slots& visit);
  /// Ends leases on free slots until `keep` are left in each magazine of a selected region.
  void return_free_slots(const select_region& selected, std::uint64_t keep,
                         const visit_region_slots& visit);

 private:
  static constexpr std::size_t unit = default_geometry.slot;
  static constexpr std::uint64_t slab_bytes = default_geometry.slab;

  struct magazine;
  struct slab {
    std::uint64_t base = 0;
    std::uint64_t leased = 0;
    std::uint64_t free = 0;
    magazine* home = nullptr;
    bool listed = false;  // in home->available
  };
  struct magazine {
    rid region = root;
    unsigned units = 0;
    unsigned misses = 0;
    std::uint64_t next_lease = first_lease_slots;
    std::uint64_t free_slots = 0;
    std::uint64_t low_watermark = 0;
    bool pending = false;              // a lease was requested
    std::vector<slab*> available;      // all slabs with a free slot, and some without
    std::vector<std::uint64_t> slabs;  // the addresses of all slabs that were ever added
  };
  struct key {
    rid region;
    unsigned units;
    bool operator==(const key&) const = default;
  };
  struct key_hash {
    std::size_t operator()(const key& k) const {
      return (static_cast<std::uint64_t>(k.region) * 0x9e37'79b9'7f4a'7c15u) ^
             (k.units * 0x517c'c1b7'2722'0a95u);
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
  static void list(slab& s) {
    if (s.listed) return;
    s.listed = true;
    s.home->available.push_back(&s);
  }
  /// The slab of a leased slot, and its bit there; nullptr if no leased slot starts at p.
  const slab* find(const void* p, std::uint64_t& bit) const {
    const auto start = reinterpret_cast<std::uint64_t>(p);
    const auto it = slabs_.find(start & ~(slab_bytes - 1));
    if (it == slabs_.end() || start % unit != 0) return nullptr;
    bit = std::uint64_t{1} << start % slab_bytes / unit;
    return (it->second.leased & bit) != 0 ? &it->second : nullptr;
  }
  slab* find(const void* p, std::uint64_t& bit) {
    return const_cast<slab*>(static_cast<const lease_table*>(this)->find(p, bit));
  }
  /// The slab at `base` if it still belongs to the magazine.
  slab* slab_of(const magazine& m, std::uint64_t base);

  std::unordered_map<std::uint64_t, slab> slabs_;
  std::unordered_map<key, magazine, key_hash> magazines_;
  magazine* last_ = nullptr;
  fault fault_;
};

}  // namespace quarry::cluster::detail
