// SPDX-License-Identifier: Apache-2.0
#pragma once
/// slab: the default heap. Slots of a class side by side in segments, handed out by ticket.
///
///   malloc    lanes of a warp that call together (their company); of them, those that want the same class
///             -> one fetch_add on an entry of the class: a ticket each, and the segment       (slab_entry.hpp)
///             -> slot i of the segment. Nothing else is read or written.
///   free      segment and slot from the address
///             -> set the slot's bit, then lower the segment's count, once for all lanes that free in it; a lane that
///                is alone does both at once. Where a segment has few slots, its bits are in the word that counts, and
///                one step is enough
///             -> at three moments only: list the segment, or give it up for any class        (slab_segments.hpp)
///
/// A class has several entries, so that no word becomes a bottleneck; a warp uses one of them. Lanes of a warp that
/// together fill whole segments take such, and no tickets: each warp remembers where it had some last. And lanes
/// that give back all slots of a segment give it up at once. Requests above half a segment are runs of segments.
///
/// An entry is renewed, by the lane whose ticket says so, with
///   1. segments that are free again, side by side, as many as those who wait need, where many are free,
///   2. the free slots of a used segment of the class, if one with a quarter free is soon found,
///   3. those of any used segment, if all of the pool was used: the last free segments are for other sizes,
///   4. any segments that are free again, and then some that were never used: the part of the pool that is in use grows,
///   5. segments that large blocks gave back,
///   6. the free slots of any segment of the class, however long it takes to find one,
///   7. any of these again, after the undrawn tickets of all entries were taken back (flush).
/// While not much of the pool was ever used, a single free segment does as well as many, and new ones come right after 1.
/// When most of it was, and an entry had used slots last, lanes that would have to wait take some for themselves: there may
/// be few in a segment.
/// When there is nothing, all who wait for the entry are refused together. Nearly always it is the first, from where the
/// entry had its last segments: that is part of malloc itself, and so is a short wait for it (malloc_soon). All
/// else is called.
///
/// Invariants: those of slab_entry.hpp and slab_segments.hpp. Metadata lies outside the pool: writing past a block
/// destroys user data only.
/// Ordering: an owner's accesses are before its free; free releases to whoever recycles or ends the segment,
/// the entry hands that on to malloc.
/// Progress: a lane waits for those who renew its entry, and these wait for nobody. Nothing else waits, but for a bit that
/// was sent to memory already (slab_segments.hpp). A company
/// waits as one, whatever classes it wants: its lanes vote in every turn, and none goes on before all are served or
/// refused. (Lanes of a warp that went different ways share one program counter in turn, and little is promised about
/// the turns: those that left a loop wait for the lanes still in it, and a lane that spins may keep its warp to
/// itself. So no lane may wait, by spinning or behind a loop, while a lane of its warp owes something.)
///
/// Speed: what happens often is written in malloc and free, not called. What is called loads the heap's members from
/// memory, and thousands of warps that do so at once queue for one line; and it saves registers on stacks that
/// together are far larger than the caches. Where one lane acts for its company there, it waits for nothing and calls
/// nothing: its mates wait to meet it, and on an H200 (CUDA 13.0) they did not always, if it did. A lane that is
/// alone skips most of what a company has to agree on.

#include <quarry/core/allocator.hpp>
#include <quarry/pool/slab/entry.hpp>
#include <quarry/pool/slab/fault.hpp>
#include <quarry/pool/slab/frontier.hpp>
#include <quarry/pool/slab/segments.hpp>
#include <quarry/pool/slab/shape.hpp>
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
        shape_(pool.size),
        self_(metadata.take<basic_slab>("slab", 1)),
        entries_(metadata, shape_.entries()),
        supplied_(metadata, "supplied entries", shape_.entries()),
        frontier_(metadata),
        places_(metadata.take<std::uint32_t>("places", shape_.places())),
        segments_(metadata, shape_.segments, shape_.classes, shape_.bitmap_words(),
                  Tuning.few_slots) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    if (lane != 0 || lanes == 0) return;
    *self_ = *this;
    frontier_.set(0, shape_.segments);
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n - 1 >= largest_slot()) return rare<&basic_slab::malloc_large>(n);
    const std::uint32_t c = slab_sizes::class_of(n);
    const simt::lane_mask company = simt::active_mask();
    const bool alone = is_one(company);
    const simt::lane_mask group = alone ? company : simt::match_any(company, c);
    const std::uint32_t lanes = simt::popc(group);
    const std::uint32_t rank = simt::popc(group & simt::lanes_below());
    const std::uint32_t entry = entry_for(c, lanes);
    slab_word word{};
    if (rank == lanes - 1)  // the last one, which is served last
      word = wants_whole(c, lanes) ? place_for(c, lanes) : draw(entry, lanes);
    if (!alone) {
      simt::sync_warp(company);
      word.value = simt::shuffle(company, word.value, simt::highest_bit(group));
    }
    const std::uint32_t capacity = shape_.capacity(c);
    const std::uint32_t i = word.ticket() + rank;
    bool served = !word.is_recycled() && i < word.size() * capacity;
    if (!alone) served = simt::all(company, served);
    if (served) return slot(word.segment(), c, capacity, i);
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
    if (c >= shape_.classes)
      return simt::out_of_line_leaf<&basic_slab::free_large>(self_, segment, state);
    const auto of_size = slab_sizes::divider_of(c);
    const std::uint32_t slot =
        of_size.quotient(static_cast<std::uint32_t>(offset) & (segment_bytes() - 1));
    const std::uint32_t capacity = of_size.quotient(segment_bytes());
    const simt::lane_mask company = simt::active_mask();
    slab_state before{};
    std::uint32_t k = 1;
    if (is_one(company)) {
      if (!segments_.give_back_one(segment, slot, capacity, before)) return;
    } else {
      std::uint32_t was = 0;
      if (company != simt::full_warp)
        k = set_bits(company, segment, slot, state, capacity, was);
      else if (fill_a_word(segment, slot))
        k = set_word(segment, slot, state, capacity, was);
      else
        k = set_bits(whole_warp{}, segment, slot, state, capacity, was);
      if (k == 0) return;
      before = segments_.lower(segment, k, was, capacity);
    }
    if (segments_.is_event(before, k, capacity)) settle(segment, c, before, k, capacity);
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
  QUARRY_DEVICE static constexpr bool has(slab_fault fault) { return Tuning.fault == fault; }

  /// A lane draws again only after others were faster; so often and no more.
  static constexpr std::uint32_t patience = 1024;
  static constexpr std::uint32_t all_of_them = ~std::uint32_t{0};
  /// So often a lane looks before it is called waiting.
  static constexpr unsigned short_wait = 32;

  QUARRY_DEVICE std::uint32_t segment_bytes() const { return 1u << shape_.segment_log2; }
  QUARRY_DEVICE std::uint64_t largest_slot() const { return segment_bytes() / 2; }
  QUARRY_DEVICE static std::uint32_t warp() {
    return static_cast<std::uint32_t>(simt::global_thread() / simt::warp_size);
  }
  /// For so many lanes of a warp that want a class. Half a warp or more has an entry nearly for itself; others share one
  /// of few, for each entry keeps a part of the pool.
  QUARRY_DEVICE std::uint32_t entry_for(std::uint32_t c, std::uint32_t lanes) const {
    return lanes >= simt::warp_size / 2 && c < shape_.first_whole ? shape_.own.entry(c, warp())
                                                                  : shape_.shared.entry(c, warp());
  }
  QUARRY_DEVICE bool wants_whole(std::uint32_t c, std::uint32_t lanes) const {
    return c >= shape_.first_whole && lanes >= shape_.capacity(c);
  }
  /// Where so many lanes of a warp, enough to fill a segment, may find whole ones: those that this warp had last, or
  /// one that had its number, as if they were an entry's that is used up.
  QUARRY_DEVICE slab_word place_for(std::uint32_t c, std::uint32_t lanes) const {
    const std::uint32_t capacity = shape_.capacity(c);
    const std::uint32_t segments = 1u << log2_floor(quotient(lanes, capacity));
    const std::uint32_t last = place(c).load(simt::relaxed);
    return slab_word::used_up(last != 0 ? last - 1 : warp() * segments % shape_.segments, segments,
                              capacity);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> place(std::uint32_t c) const {
    return simt::atomic_ref<std::uint32_t>(
        places_[((c - shape_.first_whole) << shape_.places_log2) +
                (warp() & ((1u << shape_.places_log2) - 1))]);
  }
  QUARRY_DEVICE bool is_own(std::uint32_t entry) const { return entry >= shape_.own.first; }
  QUARRY_DEVICE slab_word draw(std::uint32_t entry, std::uint32_t tickets) const {
    return {entries_.at(entry).fetch_add(tickets, simt::by_value)};
  }
  /// Renews an entry, of which so many tickets are drawn already.
  QUARRY_DEVICE void supply(std::uint32_t entry, slab_word word, std::uint32_t drawn,
                            std::uint32_t capacity) const {
    entries_.at(entry).store(word.value + drawn, simt::release);
    if (drawn < word.limit(capacity)) supplied_.put(entry);
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
    float q;  // as __fdividef, but that one prepares for numbers below 2^-126
    asm("div.approx.ftz.f32 %0, %1, %2;"
        : "=f"(q)
        : "f"(static_cast<float>(i) + 0.5f), "f"(static_cast<float>(n)));
    return __float2uint_rd(q);
#else
    return i / n;
#endif
  }

  /// All lanes of a warp: a company that the compiler knows need not be made sure of before each shuffle and vote.
  struct whole_warp {
    QUARRY_DEVICE constexpr operator simt::lane_mask() const { return simt::full_warp; }
  };
  QUARRY_DEVICE static bool is_one(simt::lane_mask lanes) { return (lanes & (lanes - 1)) == 0; }
  /// A name for the word that has the bit of a slot. A segment has 128 at most.
  QUARRY_DEVICE static std::uint32_t word_of(std::uint32_t segment, std::uint32_t slot) {
    return segment * 128 + slot / 32;
  }
  /// Whether the slots that a whole warp gives back are all those of a word, in order: as it took them, mostly.
  QUARRY_DEVICE static bool fill_a_word(std::uint32_t segment, std::uint32_t slot) {
    const std::uint32_t word = word_of(segment, slot);
    return simt::all(whole_warp{},
                     word == simt::shuffle(whole_warp{}, word, 0) && slot % 32 == simt::lane_id());
  }
  /// Their bits: what set_bits does then, with less thought.
  QUARRY_DEVICE std::uint32_t set_word(std::uint32_t segment, std::uint32_t slot, slab_state state,
                                       std::uint32_t capacity, std::uint32_t& was) const {
    simt::sync_warp(whole_warp{});  // one acts for others
    if (simt::lane_id() != 0) return 0;
    if (capacity == simt::warp_size && segments_.all_taken(segment, state, capacity)) {
      segments_.give_up(segment);
      return 0;
    }
    was = segments_.bits(segment, slot / 32).fetch_or(~std::uint32_t{0}, simt::between_fences);
    return simt::popc(~was);
  }
  /// The bits of the slots that a company gives back. Where the lanes of each segment (a group) have slots side by side in one
  /// word, the first of them sets all bits at once; if they are all slots there are, it gives the segment up: nobody else
  /// can know of it. Else one lane of a group has to count for it, but each for itself where the bits are the count.
  /// Returns what this one counts.
  template <class Company>
  QUARRY_DEVICE std::uint32_t set_bits(Company company, std::uint32_t segment, std::uint32_t slot,
                                       slab_state state, std::uint32_t capacity,
                                       std::uint32_t& was) const {
    const simt::lane_mask group = simt::match_any(company, segment);
    const std::uint32_t lanes = simt::popc(group);
    const std::uint32_t rank = simt::popc(group & simt::lanes_below());
    const std::uint32_t first = simt::shuffle(company, slot, simt::lowest_bit(group));
    const bool together = simt::all(company, slot == first + rank && first % 32 + lanes <= 32);
    simt::sync_warp(company);  // one acts for others
    if (together) {
      if (rank != 0) return 0;
      if (lanes == capacity && segments_.all_taken(segment, state, capacity)) {
        segments_.give_up(segment);
        return 0;
      }
      const std::uint32_t slots = (~std::uint32_t{0} >> (32 - lanes)) << slot % 32;
      was = segments_.set_bits(segment, slot, slots, capacity);
      return simt::popc(slots & ~was);
    }
    was = segments_.set_bits(segment, slot, 1u << slot % 32, capacity);
    const bool is_given = (was >> slot % 32 & 1) == 0;  // what is given back twice counts once
    simt::sync_warp(company);                           // one counts for others
    const simt::lane_mask given = simt::ballot(company, is_given) & group;
    if (segments_.is_few(capacity)) return is_given ? 1 : 0;
    return is_given && simt::lane_id() == simt::lowest_bit(given) ? simt::popc(given) : 0;
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
  /// What a free does at such moments.
  QUARRY_DEVICE void settle(std::uint32_t segment, std::uint32_t c, slab_state before,
                            std::uint32_t k, std::uint32_t capacity) const {
    if (segments_.settle(segment, c, before, k, capacity))
      simt::out_of_line_leaf<&basic_slab::give_up_last>(self_, segment, c);
  }
  QUARRY_DEVICE void give_up_last(std::uint32_t segment, std::uint32_t c) const {
    segments_.give_up_last(segment, c, shape_.capacity(c));
  }

  // Getting slots, in slab_impl.hpp.
  struct visitor;
  QUARRY_DEVICE bool take_turn(visitor* v) const;
  QUARRY_DEVICE void approach(visitor* v, std::uint32_t lanes) const;
  QUARRY_DEVICE void claim(visitor* v, bool mine) const;
  QUARRY_DEVICE bool draw_again(std::uint32_t entry, std::uint32_t capacity, std::uint32_t lanes,
                                slab_word& word) const;
  QUARRY_DEVICE slab_word take_near(std::uint32_t c, std::uint32_t capacity, std::uint32_t entry,
                                    bool whole, std::uint32_t plenty, slab_word last) const;
  QUARRY_DEVICE void find_whole(visitor* v, std::uint32_t lanes) const;
  QUARRY_DEVICE bool find_own(visitor* v, std::uint32_t lanes) const;
  QUARRY_DEVICE void renew(visitor* v, std::uint32_t lanes) const;
  QUARRY_DEVICE std::uint32_t wanted(std::uint32_t entry, std::uint32_t capacity,
                                     slab_word last) const;
  /// Segments that it takes at least: a warp's own one of a class with small slots some, lest it be renewed all the time.
  QUARRY_DEVICE std::uint32_t least_for(std::uint32_t entry, std::uint32_t capacity) const {
    const std::uint32_t some = quotient(shape_.least_own_slots, capacity);
    return is_own(entry) && capacity >= 256 && some > 1 ? (some < 8 ? some : 8) : 1;
  }
  /// So many of 64 segments have to be free, or an entry of the class looks for used slots first; but any will do while not
  /// much of the pool is used.
  QUARRY_DEVICE std::uint32_t plenty_for(std::uint32_t c, slab_frontier::view edge) const {
    const std::uint32_t much = c < shape_.first_whole ? shape_.much_of_small : shape_.much;
    return edge.first() < much ? 1 : shape_.plenty;
  }
  QUARRY_DEVICE std::uint64_t search(const visitor* v) const;
  QUARRY_DEVICE std::uint64_t find_used(std::uint32_t c, std::uint32_t attempts, bool only_sparse,
                                        std::uint32_t most) const;
  QUARRY_DEVICE std::uint64_t find_free(std::uint32_t c, std::uint32_t segments,
                                        std::uint32_t least) const;
  QUARRY_DEVICE std::uint64_t find_new(std::uint32_t c, std::uint32_t segments) const;
  QUARRY_DEVICE std::uint64_t adopt(std::uint32_t c, std::uint64_t word) const;
  /// What a search gave, as a word.
  QUARRY_DEVICE static std::uint64_t found(std::uint32_t first, std::uint32_t segments) {
    return (first == index_set::none ? slab_word::vacant(0) : slab_word::fresh(first, segments))
        .value;
  }
  QUARRY_DEVICE std::uint64_t take_anywhere(std::uint32_t segments, std::uint32_t least,
                                            std::uint32_t plenty, std::uint32_t used) const;
  QUARRY_DEVICE std::uint64_t take_from(std::uint32_t w, std::uint32_t segments,
                                        std::uint32_t least) const;
  QUARRY_DEVICE std::uint64_t take_any() const;
  QUARRY_DEVICE std::uint64_t find_any(std::uint32_t c) const;
  QUARRY_DEVICE std::uint64_t take_new(std::uint32_t segments) const;
  QUARRY_DEVICE std::uint32_t find_some() const { return segments_.free().find(salt(), 4096); }
  /// Low ones first, and further away with each attempt.
  QUARRY_DEVICE std::uint32_t take_used(std::uint32_t c, unsigned attempt) const {
    const std::uint32_t any = simt::scramble(salt() + attempt);
    const std::uint32_t reach = attempt < 10 ? 4u << attempt : 4096u;
    const std::uint32_t segment = segments_.sparse(c).take(any, reach);
    return segment != index_set::none ? segment : segments_.dense(c).take(any, reach);
  }
  QUARRY_DEVICE std::uint32_t take_sparse(std::uint32_t c) const {
    return segments_.sparse(c).take_soon(1, salt(), 4096);
  }
  QUARRY_DEVICE std::uint32_t recycle(std::uint32_t segment, std::uint32_t c,
                                      std::uint32_t most) const {
    return segments_.recycle(segment, c, shape_.capacity(c), most);
  }
  QUARRY_DEVICE std::uint32_t take_run(std::uint32_t segments) const;
  QUARRY_DEVICE std::uint32_t take_run_soon(std::uint32_t segments) const;
  QUARRY_DEVICE void join_runs() const { segments_.runs().move_to(segments_.free()); }
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
  /// Given up, or never used. (What its state says is of no meaning then.)
  bool is_free(std::uint32_t segment) const {
    const slab_frontier::view edge = frontier_.look();
    return segments_.is_free(segment) || (segment >= edge.first() && segment < edge.end());
  }

  std::byte* pool_;
  shape_type shape_;
  basic_slab* self_;
  slab_entries entries_;
  index_set supplied_;  // entries that may have good tickets
  slab_frontier frontier_;
  std::uint32_t*
      places_;  // by class and warp: one above the segment that lanes which wanted whole ones had last
  slab_segments<Tuning.fault> segments_;
};

using slab = basic_slab<>;

}  // namespace quarry

#include <quarry/pool/slab/impl.hpp>     // IWYU pragma: export
#include <quarry/pool/slab/inspect.hpp>  // IWYU pragma: export
#include <quarry/pool/slab/large.hpp>    // IWYU pragma: export
#include <quarry/pool/slab/resize.hpp>   // IWYU pragma: export
