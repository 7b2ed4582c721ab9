// SPDX-License-Identifier: Apache-2.0
#pragma once
/// slab_table: an address range divided into slabs, and metadata about each of them.
///
///   addresses  | slab 0 | slab 1 | ...             objects only
///   chunks     4 bytes per chunk (16 slabs)        the stamp of the owning pool, and the units
///                                                  of its slabs if all have the same
///   units      2 bytes per slab                    the slot size of the slab
///   live       8 bytes per slab                    bitmap of the live objects
///   links      24 bytes per slab                   fields that only slow paths access
///
/// Lyberis et al. (2012) map addresses to slabs by a trie. Here the position in the arrays is
/// computed: one load instead of one dependent load per digit. The arrays are reserved addresses,
/// so parts that were never accessed take no memory (0.8 % of the slabs in use).
///
/// The arrays are separate because of the caches. The next request of a size waits for the size of
/// the object that was freed last, since the size selects the magazine. This load is served by the
/// chunk array, which stays in the L1 cache even with a million objects, unless slabs of several
/// sizes share the chunk. No instruction waits for `live`, which only validates the pointer.
///
/// The state of a slab, by `units`:
///   0            no information: the slab is inside a large object or a free run
///   1 ... most   a slab of a group of slots of that size; `place` is its index in the group. Each
///                slot that starts in the slab has a bit (address / slot % 64): in `free`, in
///                `live`, or in neither while the slot is in a magazine
///   large        the first slab of a large object of links.count slabs; live is 1, or 0 if the
///                object was freed and is cached for the next request of that length
///   run          the first slab of a free run of links.count slabs
///   run_end      the last slab of a free run of two or more slabs
///
/// Thread safety: the owner of a chunk accesses all fields of its slabs. Any thread may read the
/// owner, with a relaxed load: a thread reads further fields only if its own pool is the owner, and
/// only that pool's source changes this.

#include <quarry/core/error.hpp>
#include <quarry/region/detail/address_range.hpp>
#include <quarry/region/geometry.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace quarry {

using slab_number = std::uint32_t;
using pool_stamp = std::uint32_t;
inline constexpr slab_number no_slab = ~slab_number{0};
/// A pool stamp is less than 2^22, so that stamp and units share a word.
inline constexpr unsigned stamp_bits = 22;
inline constexpr pool_stamp no_owner = 0;
/// The owner of addresses that are not in the tree.
inline constexpr pool_stamp outside = (pool_stamp{1} << stamp_bits) - 1;

namespace slab_units {
inline constexpr std::uint16_t none = 0;
inline constexpr std::uint16_t large = 0xffff;
inline constexpr std::uint16_t run = 0xfffe;
inline constexpr std::uint16_t run_end = 0xfffd;
}  // namespace slab_units

struct slab_links {
  union {
    std::uint64_t free;   // a slab of a group: bitmap of the free slots
    std::uint64_t count;  // large, run, run_end: number of slabs
  };
  slab_number next;  // in a list of the pool
  slab_number prev;
  std::uint8_t place;  // index of the slab in its group
  std::uint8_t busy;   // place 0 only: slabs of the group that are current or have a used slot
};
static_assert(sizeof(slab_links) == 24);

/// Consecutive slabs.
struct slab_run {
  slab_number first = 0;
  slab_number count = 0;
  slab_number end() const { return first + count; }
  explicit operator bool() const { return count != 0; }
};

/// A view of a slab_table: base addresses of the range and of the arrays.
template <slab_geometry Geometry = default_geometry>
class slab_table_view {
  static_assert(Geometry.is_sound(), "slab <= 64 slots, page >= 16 slabs, all powers of two");

 public:
  static constexpr slab_geometry geometry = Geometry;
  static constexpr slab_number chunk = Geometry.slabs_in_chunk();

  slab_number count() const { return static_cast<slab_number>(size_ / Geometry.slab); }
  std::byte* base() const { return reinterpret_cast<std::byte*>(base_); }
  std::size_t size() const { return size_; }

  /// Returns the offset of an address in the range; >= size() if the address is outside.
  std::uintptr_t offset_of(const void* p) const {
    return reinterpret_cast<std::uintptr_t>(p) - base_;
  }
  bool contains(const void* p) const { return offset_of(p) < size_; }
  static slab_number slab_at(std::uintptr_t offset) {
    return static_cast<slab_number>(offset / Geometry.slab);
  }
  std::byte* address(slab_number n) const { return base() + std::size_t{n} * Geometry.slab; }

  /// The word of a chunk: owner and common units. The chunk behind the last slab has owner
  /// `outside`.
  class chunk_word {
   public:
    constexpr chunk_word(pool_stamp owner, unsigned units) : word_(owner << units_bits | units) {}
    constexpr explicit chunk_word(std::uint32_t word) : word_(word) {}
    constexpr pool_stamp owner() const { return word_ >> units_bits; }
    constexpr unsigned units() const {
      return word_ & ((1u << units_bits) - 1);
    }  // 0: slabs differ
    constexpr std::uint32_t word() const { return word_; }

   private:
    static constexpr unsigned units_bits = 32 - stamp_bits;
    static_assert(Geometry.most_units() < 1u << units_bits);
    std::uint32_t word_;
  };
  static constexpr chunk_word dirty{no_owner, 1};
  chunk_word chunk_of(slab_number n) const {
    return chunk_word(
        std::atomic_ref<std::uint32_t>(chunks_[n / chunk]).load(std::memory_order_relaxed));
  }
  pool_stamp owner(slab_number n) const { return chunk_of(n).owner(); }
  /// Requires whole chunks.
  void set_owner(slab_run run, pool_stamp who) const {
    for (slab_number n = run.first; n < run.end(); n += chunk) set_chunk(n, chunk_word(who, 0));
  }
  /// A free chunk is dirty if the system may have committed memory for it. set_owner() ends this.
  void set_dirty(slab_run run) const {
    for (slab_number n = run.first; n < run.end(); n += chunk) set_chunk(n, dirty);
  }
  bool is_dirty(slab_number n) const { return chunk_of(n).word() == dirty.word(); }
  /// Updates the chunk words after slabs of the run changed their units. Requires: one owner.
  void note_units(slab_run run) const {
    for (slab_number n = run.first / chunk * chunk; n < run.end(); n += chunk) {
      const std::uint16_t* first = units_ + n;
      const bool same =
          *first <= Geometry.most_units() &&
          std::all_of(first, first + chunk, [&](std::uint16_t u) { return u == *first; });
      set_chunk(n, chunk_word(owner(n), same ? *first : 0));
    }
  }

  std::uint16_t& units(slab_number n) const { return units_[n]; }
  std::uint64_t& live(slab_number n) const { return live_[n]; }
  slab_links& links(slab_number n) const { return links_[n]; }

  /// Clears the units and live bits of slabs that get a new owner.
  void forget(slab_run run) const {
    std::fill_n(units_ + run.first, run.count, slab_units::none);
    std::fill_n(live_ + run.first, run.count, std::uint64_t{0});
  }

 protected:
  void set_chunk(slab_number n, chunk_word word) const {
    std::atomic_ref<std::uint32_t>(chunks_[n / chunk])
        .store(word.word(), std::memory_order_relaxed);
  }

  std::uintptr_t base_ = 0;
  std::size_t size_ = 0;
  std::uint32_t* chunks_ = nullptr;
  std::uint64_t* live_ = nullptr;
  std::uint16_t* units_ = nullptr;
  slab_links* links_ = nullptr;
};

/// Owns the address range and the arrays.
template <slab_geometry Geometry = default_geometry>
class slab_table : public slab_table_view<Geometry> {
 public:
  /// Reserves `size` bytes, rounded up to pages, at `where` or at any address. Throws
  /// out_of_memory, or error if the arguments are invalid. `backed` == false: the range at `where`
  /// is not mapped.
  explicit slab_table(bytes size, void* where = nullptr, bool backed = true) {
    check_range(size.value(), reinterpret_cast<std::uintptr_t>(where));
    this->size_ = align_up(size.value(), Geometry.page);
    // A large range starts at a multiple of up to 1 GiB, for objects with large alignments.
    const std::size_t alignment =
        std::bit_floor(std::clamp<std::size_t>(this->size_ / 64, Geometry.page, 1u << 30));
    if (backed)
      data_ = where == nullptr ? address_range(this->size_, alignment)
                               : address_range(where, this->size_);
    this->base_ = reinterpret_cast<std::uintptr_t>(backed ? data_.base() : where);
    const slab_number count = this->count();
    this->chunks_ = reserve<std::uint32_t>(chunks_range_, count / this->chunk + 1);
    this->set_chunk(count, typename slab_table_view<Geometry>::chunk_word(outside, 0));
    this->units_ = reserve<std::uint16_t>(units_range_, count);
    this->live_ = reserve<std::uint64_t>(live_range_, count);
    this->links_ = reserve<slab_links>(links_range_, count);
  }
  slab_table(const slab_table&) = delete;
  slab_table& operator=(const slab_table&) = delete;

  /// Returns the memory of the slabs to the system, in whole pages of the system.
  void purge(slab_run run) const {
    const std::size_t first =
        align_up(std::size_t{run.first} * Geometry.slab, address_range::system_page);
    const std::size_t end =
        align_down(std::size_t{run.end()} * Geometry.slab, address_range::system_page);
    if (first < end && data_.base() != nullptr) data_.purge(first, end - first);
  }

 private:
  static void check_range(std::uint64_t size, std::uintptr_t where) {
    const std::uint64_t most = std::uint64_t{no_slab} * Geometry.slab - Geometry.page;
    if (size == 0 || size > most)
      throw error("a range of addresses has 1 to " + std::to_string(most) + " bytes, not " +
                  std::to_string(size));
    if (where % Geometry.page != 0)
      throw error("a range of addresses starts at a multiple of " + to_text(bytes(Geometry.page)) +
                  ", not at " + std::to_string(where));
    if (where > address_range::limit ||
        align_up(size, Geometry.page) > address_range::limit - where)
      throw error("a range of " + to_text(bytes(size)) + " at address " + std::to_string(where) +
                  " ends behind the last address of a process, " +
                  std::to_string(address_range::limit));
  }
  template <class T>
  static T* reserve(address_range& range, std::size_t count) {
    range = address_range(count * sizeof(T), address_range::system_page);
    return reinterpret_cast<T*>(range.base());
  }

  address_range data_;
  address_range chunks_range_;
  address_range units_range_;
  address_range live_range_;
  address_range links_range_;
};

}  // namespace quarry
