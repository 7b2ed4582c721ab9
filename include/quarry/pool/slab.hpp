// SPDX-License-Identifier: Apache-2.0
#pragma once
/// slab: the default heap. Slots of a class side by side in segments, handed out by ticket.
///
///   malloc    lanes of a warp that call together (their company); of them, those that want the same class
///             -> one fetch_add on an entry of the class: a ticket each, and the segment       (slab_entry.hpp)
///             -> slot i of the segment. Nothing else is read or written.
///   free      segment and slot from the address
///             -> set the slot's bit, then lower the segment's count, once for all lanes that free in it
///             -> at three moments only: list the segment, or give it up for any class        (slab_segments.hpp)
///
/// A class has several entries, so that no word becomes a bottleneck; a warp uses one of them. Requests above half
/// a segment are runs of segments.
///
/// An entry is renewed, by the lane whose ticket says so, with
///   1. segments that are free again, side by side, as many as those who wait need, if some are soon found,
///   2. the free slots of a used segment of the class, where some have a quarter free,
///   3. any segments that are free again, and then some that were never used: the part of the pool that is in use grows,
///   4. the free slots of any segment of the class,
///   5. any of these again, after the undrawn tickets of all entries were taken back (flush).
/// When there is nothing, all who wait for the entry are refused together. Nearly always it is the first, from where the
/// entry had its last segments: that is part of malloc itself, and so is a short wait for it (malloc_soon). All
/// else is called.
///
/// Invariants: those of slab_entry.hpp and slab_segments.hpp. Metadata lies outside the pool: writing past a block
/// destroys user data only.
/// Ordering: an owner's accesses are before its free; free releases to whoever recycles or ends the segment,
/// the entry hands that on to malloc.
/// Progress: a lane waits for those who renew its entry, and these wait for nobody. Nothing else waits. A company
/// waits as one, whatever classes it wants: its lanes vote in every turn, and none goes on before all are served or
/// refused. (Lanes of a warp that went different ways share one program counter in turn, and little is promised about
/// the turns: those that left a loop wait for the lanes still in it, and a lane that spins may keep its warp to
/// itself. So no lane may wait, by spinning or behind a loop, while a lane of its warp owes something.)
///
/// Speed: what happens often is written in malloc and free, not called. What is called loads the heap's members from
/// memory, and thousands of warps that do so at once queue for one line; and it saves registers on stacks that
/// together are far larger than the caches. Where one lane acts for its company there, it takes no turns and calls
/// nothing: its mates wait to meet it, and on an H200 (CUDA 13.0) they did not always, if it did.

#include <quarry/core/allocator.hpp>
#include <quarry/pool/slab_entry.hpp>
#include <quarry/pool/slab_segments.hpp>
#include <quarry/pool/slab_shape.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/out_of_line.hpp>
#include <quarry/simt/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

template <slab_tuning Tuning = slab_tuning{}>
class basic_slab {
  using shape_type = slab_shape<Tuning>;

 public:
  static constexpr abilities can = {
      .frees_one = true, .reuses = true, .max_alignment = 256, .min_pool = 4096};

  basic_slab() = default;
  basic_slab(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        shape_(shape_type::of(pool.size)),
        self_(metadata.take<basic_slab>("slab", 1)),
        entries_(metadata, shape_.entries()),
        supplied_(metadata, "supplied entries", shape_.entries()),
        frontier_(metadata.take<std::uint64_t>("frontier", 1)),
        segments_(metadata, shape_.segments, shape_.classes, shape_.bitmap_words()) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    if (lane != 0 || lanes == 0) return;
    *self_ = *this;
    *frontier_ = std::uint64_t{shape_.segments} << 32;
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n - 1 >= largest_slot()) return rare<&basic_slab::malloc_large>(n);
    const std::uint32_t c = slab_sizes::class_of(n);
    const simt::lane_mask company = simt::coalesced();
    const simt::lane_mask group = simt::match_any(company, c);
    const std::uint32_t lanes = simt::popc(group);
    const std::uint32_t rank = simt::popc(group & simt::lanes_below());
    const std::uint32_t entry = entry_for(c, lanes);
    slab_word word{};
    if (rank == lanes - 1) word = draw(entry, lanes);  // the last one, which is served last
    simt::sync_warp(company);
    word.value = simt::shuffle(company, word.value, simt::highest_bit(group));
    const std::uint32_t capacity = shape_.capacity(c);
    const std::uint32_t i = word.ticket() + rank;
    if (simt::all(company, !word.is_recycled() && i < word.size() * capacity))
      return slot(word.segment(), c, capacity, i);
    return malloc_soon(c, capacity, entry, company, group, word);
  }

  /// At a multiple of `alignment`, a power of two up to a segment.
  QUARRY_DEVICE void* malloc(std::size_t n, std::size_t alignment) const {
    if (alignment <= block_alignment || n == 0 ||
        n > std::uint64_t{shape_.segments} << shape_.segment_log2)
      return malloc(n);
    const std::uint64_t size = n > alignment ? n : alignment;
    return malloc(std::uint64_t{1} << log2_ceil(size));  // slots of that size lie on its multiples
  }

  QUARRY_DEVICE void free(void* block) const {
    if (block == nullptr) return;
    const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_);
    const auto segment = static_cast<std::uint32_t>(offset >> shape_.segment_log2);
    const slab_state state = segments_.state(segment);
    simt::fence_stores();
    const std::uint32_t c = state.kind() - 1;
    if (c >= shape_.classes) return rare<&basic_slab::free_large>(segment, state);
    const auto of_size = slab_sizes::reciprocal_of(c);
    const std::uint32_t slot =
        of_size.quotient(static_cast<std::uint32_t>(offset) & (segment_bytes() - 1));
    const simt::lane_mask company = simt::coalesced();
    const simt::lane_mask given = set_bits(company, segment, slot);
    const simt::lane_mask group = simt::match_any(company, segment) & given;
    if (group == 0 || simt::lane_id() != simt::lowest_bit(group)) return;
    const std::uint32_t capacity = of_size.quotient(segment_bytes());
    const slab_state was = segments_.lower(segment, simt::popc(group));
    if (slab_segments::is_event(was, simt::popc(group), capacity))
      segments_.settle(segment, c, was, simt::popc(group), capacity);
  }

  /// How much of a block may be used: what was asked for, rounded up.
  QUARRY_DEVICE std::uint64_t usable_size(void* block) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_);
    const slab_state state =
        segments_.state(static_cast<std::uint32_t>(offset >> shape_.segment_log2));
    if (state.kind() == slab_state::large)
      return std::uint64_t{state.run_length()} << shape_.segment_log2;
    return slab_sizes::size_of(state.kind() - 1);
  }

  /// See resizable_allocator, and slab_resize.hpp.
  QUARRY_DEVICE std::uint64_t resize(std::uint64_t from, std::uint64_t to) const;

  std::string check_invariants() const;
  heap_statistics statistics() const;
  template <class Visit>
  void visit_pieces(Visit&& visit) const;  // slab_inspect.hpp

 private:
  /// A lane draws again only after others were faster; so often and no more.
  static constexpr std::uint32_t patience = 1024;
  /// So often a lane looks before it is called waiting.
  static constexpr unsigned short_wait = 32;

  QUARRY_DEVICE std::uint32_t segment_bytes() const { return 1u << shape_.segment_log2; }
  QUARRY_DEVICE std::uint64_t largest_slot() const { return segment_bytes() / 2; }
  /// For so many lanes of a warp that want a class. Half a warp or more has an entry nearly for itself; others share one
  /// of few, for each entry keeps a part of the pool.
  QUARRY_DEVICE std::uint32_t entry_for(std::uint32_t c, std::uint32_t lanes) const {
    const auto warp = static_cast<std::uint32_t>(simt::global_thread() / simt::warp_size);
    return lanes >= simt::warp_size / 2
               ? shape_.first_own() + shape_.own.first(c) + modulo_log2(warp, shape_.own.log2_of(c))
               : shape_.shared.first(c) + modulo_log2(warp, shape_.shared.log2_of(c));
  }
  QUARRY_DEVICE static std::uint32_t modulo_log2(std::uint32_t n, std::uint32_t log2) {
    return n & ((1u << log2) - 1);
  }
  QUARRY_DEVICE bool is_own(std::uint32_t entry) const { return entry >= shape_.first_own(); }
  QUARRY_DEVICE slab_word draw(std::uint32_t entry, std::uint32_t tickets) const {
    return {entries_.at(entry).fetch_add(tickets, simt::by_value)};
  }
  /// Renews an entry, of which so many tickets are drawn already.
  QUARRY_DEVICE void supply(std::uint32_t entry, slab_word word, std::uint32_t drawn,
                            std::uint32_t capacity) const {
    entries_.at(entry).store(word.value + drawn, simt::release);
    if (drawn < word.limit(capacity)) supplied_.put_at_once(entry);
  }
  QUARRY_DEVICE void* slot(std::uint32_t segment, std::uint32_t c, std::uint32_t i) const {
    return pool_ + (std::uint64_t{segment} << shape_.segment_log2) +
           std::uint64_t{i} * slab_sizes::size_of(c);
  }
  /// The i-th of a run of segments.
  QUARRY_DEVICE void* slot(std::uint32_t first, std::uint32_t c, std::uint32_t capacity,
                           std::uint32_t i) const {
    const std::uint32_t further = quotient(i, capacity);
    return slot(first + further, c, i - further * capacity);
  }
  /// i / n, for i < 2^18 and n <= 4096: the nearest float to (i + 1/2) / n is on the same side of every whole number.
  QUARRY_DEVICE static std::uint32_t quotient(std::uint32_t i, std::uint32_t n) {
#if QUARRY_DEVICE_CODE
    return __float2uint_rd(__fdividef(static_cast<float>(i) + 0.5f, static_cast<float>(n)));
#else
    return i / n;
#endif
  }

  /// The bits of the slots that a company gives back. Returns whose were not set: a slot given back twice counts once.
  QUARRY_DEVICE simt::lane_mask set_bits(simt::lane_mask company, std::uint32_t segment,
                                         std::uint32_t slot) const {
    const std::uint32_t bit = 1u << slot % 32;
    const std::uint32_t word = segment * 128 + slot / 32;
    const bool together =
        simt::all(company, word == simt::shuffle(company, word, simt::lowest_bit(company)));
    const std::uint32_t slots = together ? simt::reduce_or(company, bit) : bit;
    simt::sync_warp(company);
    std::uint32_t was = 0;
    if (!together || (company & simt::lanes_below()) == 0)
      was = segments_.bits(segment, slot / 32).fetch_or(slots, simt::after_fence);
    if (together) was = simt::shuffle(company, was, simt::lowest_bit(company));
    simt::sync_warp(company);  // one counts for others
    return simt::ballot(company, (was & bit) == 0);
  }

  /// Calls what is off the fast path; on *self_, so that kernels need not pass the members on.
  template <auto Member, class... Arguments>
  QUARRY_DEVICE auto rare(Arguments... arguments) const {
    return simt::out_of_line<Member>(self_, arguments...);
  }
  QUARRY_DEVICE void* malloc_soon(std::uint32_t c, std::uint32_t capacity, std::uint32_t entry,
                                  simt::lane_mask company, simt::lane_mask group,
                                  slab_word word) const;
  QUARRY_DEVICE void* malloc_late(std::uint32_t c, std::uint32_t capacity, std::uint32_t entry,
                                  simt::lane_mask company, std::uint64_t drawn,
                                  std::uint64_t more) const;
  QUARRY_DEVICE void* malloc_large(std::uint64_t n) const;
  QUARRY_DEVICE void free_large(std::uint32_t segment, slab_state state) const;
  QUARRY_DEVICE void settle(std::uint32_t segment, std::uint32_t c, slab_state was, std::uint32_t k,
                            std::uint32_t capacity) const {
    segments_.settle(segment, c, was, k, capacity);
  }

  // Getting slots, in slab_impl.hpp.
  struct visitor;
  QUARRY_DEVICE bool take_turn(visitor* v) const;
  QUARRY_DEVICE void approach(visitor* v, std::uint32_t lanes) const;
  QUARRY_DEVICE void claim(visitor* v, bool mine) const;
  QUARRY_DEVICE bool draw_again(std::uint32_t entry, std::uint32_t capacity, std::uint32_t lanes,
                                slab_word& word) const;
  QUARRY_DEVICE slab_word renew_quickly(std::uint32_t c, std::uint32_t capacity,
                                        std::uint32_t entry, slab_word last,
                                        std::uint32_t lanes) const;
  QUARRY_DEVICE void renew(visitor* v, std::uint32_t lanes) const;
  QUARRY_DEVICE std::uint32_t wanted(std::uint32_t entry, std::uint32_t capacity,
                                     slab_word last) const;
  QUARRY_DEVICE std::uint32_t least_for(std::uint32_t entry, std::uint32_t capacity) const {
    return is_own(entry) && capacity >= 256 ? shape_.least_own_run() : 1;
  }
  QUARRY_DEVICE std::uint64_t search(const visitor* v) const;
  QUARRY_DEVICE std::uint64_t find_used(std::uint32_t c, bool worthwhile) const;
  QUARRY_DEVICE std::uint64_t find_free(std::uint32_t c, std::uint32_t segments,
                                        std::uint32_t least) const;
  QUARRY_DEVICE std::uint64_t find_new(std::uint32_t c, std::uint32_t segments) const;
  QUARRY_DEVICE std::uint64_t adopt(std::uint32_t c, std::uint64_t word) const;
  QUARRY_DEVICE std::uint64_t take_anywhere(std::uint32_t segments, std::uint32_t least) const;
  QUARRY_DEVICE std::uint64_t take_from(std::uint32_t w, std::uint32_t segments,
                                        std::uint32_t least) const;
  QUARRY_DEVICE std::uint64_t take_any() const;
  QUARRY_DEVICE std::uint64_t take_new(std::uint32_t segments) const;
  QUARRY_DEVICE std::uint32_t find_some() const { return segments_.free().find(salt(), 4096); }
  QUARRY_DEVICE bool has_worthwhile(std::uint32_t c) const { return segments_.has_worthwhile(c); }
  /// Low ones first, and further away with each attempt.
  QUARRY_DEVICE std::uint32_t take_loose(std::uint32_t c, unsigned attempt) const {
    return segments_.loose(c).take(simt::scramble(salt() + attempt),
                                   attempt < 10 ? 4u << attempt : 4096u);
  }
  QUARRY_DEVICE std::uint32_t recycle(std::uint32_t segment, std::uint32_t c,
                                      std::uint32_t least) const {
    return segments_.recycle(segment, c, shape_.capacity(c), least);
  }
  QUARRY_DEVICE std::uint32_t take_run(std::uint32_t segments) const;
  QUARRY_DEVICE std::uint32_t take_new_run(std::uint32_t segments) const;
  QUARRY_DEVICE void open_all() const;
  QUARRY_DEVICE std::uint32_t salt() const {
    return simt::scramble(static_cast<std::uint32_t>(simt::global_thread()) * 64 + simt::clock());
  }

  // Taking undrawn tickets back.
  QUARRY_DEVICE void flush() const;
  QUARRY_DEVICE void flush_entry(std::uint32_t entry) const;
  QUARRY_DEVICE void give_back(std::uint32_t segment, std::uint32_t c, std::uint32_t from,
                               std::uint32_t end) const;

  // Between kernels, in slab_inspect.hpp.
  struct holdings;
  holdings held_by_entries() const;
  template <class Visit>
  void visit_entries(Visit&& visit) const;  // visit(class, entry, word) for those with good tickets
  const char* check_segment(std::uint32_t i, slab_state s, const holdings& held) const;

  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> frontier() const {
    return simt::atomic_ref<std::uint64_t>(*frontier_);
  }

  std::byte* pool_;
  shape_type shape_;
  basic_slab* self_;
  slab_entries entries_;
  index_set supplied_;       // entries that may have good tickets
  std::uint64_t* frontier_;  // the first segment never used, and above bit 32 the end of the pool
  slab_segments segments_;
};

using slab = basic_slab<>;

}  // namespace quarry

#include <quarry/pool/slab_impl.hpp>     // IWYU pragma: export
#include <quarry/pool/slab_inspect.hpp>  // IWYU pragma: export
#include <quarry/pool/slab_resize.hpp>   // IWYU pragma: export
