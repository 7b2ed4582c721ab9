// SPDX-License-Identifier: Apache-2.0
#pragma once
/// slab: meant to be the default heap. Slots of a class side by side in segments, handed out by ticket.
///
///   malloc    lanes of a warp that call together (their company); of them, those that want the same class
///             -> one fetch_add on the cursor of (shard, class): a ticket each
///             -> the entry of the ticket: a segment                        (slab_ring.hpp)
///             -> slot i of the segment. No bit is touched.
///   free      segment and slot from the address; lanes whose slots share a word of 32
///             -> one fetch_or, and only where the word becomes well supplied or wholly free
///             -> the segment's state: recycled or released                 (slab_segments.hpp)
///
/// A shard is a group of multiprocessors; shards keep the cursors from becoming a bottleneck. Requests above half
/// a segment are runs of segments.
///
/// When the free segments are used up, a lane
///   1. recycles any segment of its class that has a free slot, however few,
///   2. takes slots that other shards have drawn up for its class,
///   3. returns what all rings hold and nobody asked for yet (flush), which may empty segments; what is still being
///      drawn up is left to those it is drawn up for,
///   4. draws once more, and gives up if that fails too.
///
/// Invariants: those of slab_ring.hpp and slab_segments.hpp. Metadata lies outside the pool: writing past a block
/// destroys user data only.
/// Ordering: an owner's accesses are before its free; free releases to whoever recycles or releases the segment,
/// the ring's entry hands that on to malloc.
/// Progress: a lane that drew a ticket waits for the entry's supplier, which waits for nobody but lanes that drew
/// before it. A lane draws again only if others took what an entry had, and gives up after `patience` rounds. Nothing
/// else waits. A company waits as one, whatever classes it wants: its lanes vote in every round, and none goes on
/// before all are served or refused (slab_ring.hpp, how to wait).

#include <quarry/core/allocator.hpp>
#include <quarry/pool/slab_ring.hpp>
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
  static_assert(Tuning.most_shards <= 32 && slab_sizes::count <= 64);

 public:
  static constexpr abilities can = {
      .frees_one = true, .reuses = true, .max_alignment = 256, .min_pool = 4096};

  basic_slab() = default;
  basic_slab(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        shape_(shape_type::of(pool.size)),
        self_(metadata.take<basic_slab>("slab", 1)),
        classes_(metadata.take<slab_class>("classes", shape_.classes)),
        supplied_(metadata.take<std::uint64_t>("supplied", shape_.shards)),
        reserves_(metadata.take<std::uint64_t>("reserves", shape_.shards * reserve_stride)),
        rings_(metadata, shape_),
        segments_(metadata, shape_.segments, shape_.classes, shape_.bitmap_words()) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    segments_.initialise(lane, lanes);
    for (std::uint64_t c = lane; c < shape_.classes; c += lanes)
      classes_[c] = shape_.describe(static_cast<std::uint32_t>(c));
    if (lane == 0) *self_ = *this;
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n - 1 >= largest_slot()) return rare<&basic_slab::malloc_large>(n);
    const std::uint32_t c = slab_sizes::class_of(n);
    const slab_class d = classes_[c];  // read before there is anything to wait for
    const simt::lane_mask company = simt::coalesced();
    const simt::lane_mask group = simt::match_any(company, c);
    const slab_ticket ticket = draw_ticket(c, d, shard(), group);
    slab_entry_word word{};
    const bool ready = rings_.look_up(d, shard(), ticket.entry, word) && word.is_fresh();
    if (simt::all(company, ready)) {
      // One says it for all lanes of an entry.
      const std::uint32_t rank = simt::popc(group & simt::lanes_below());
      if (rank == 0 || ticket.i == 0) {
        const std::uint32_t behind = d.capacity - ticket.i;
        const std::uint32_t lanes = simt::popc(group) - rank;
        rings_.looked_up(d, shard(), ticket.entry, lanes < behind ? lanes : behind);
      }
      return slot(word.segment(), c, ticket.i);
    }
    return rare<&basic_slab::malloc_late>(c, company, ticket);
  }

  /// At a multiple of `alignment`, a power of two up to a segment.
  QUARRY_DEVICE void* malloc(std::size_t n, std::size_t alignment) const {
    if (alignment <= block_alignment || n == 0 || n > std::uint64_t{shape_.segments} << shape_.segment_log2)
      return malloc(n);
    const std::uint64_t size = n > alignment ? n : alignment;
    return malloc(std::uint64_t{1} << log2_ceil(size));  // slots of that size lie on its multiples
  }

  QUARRY_DEVICE void free(void* block) const {
    if (block == nullptr) return;
    const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_);
    const auto segment = static_cast<std::uint32_t>(offset >> shape_.segment_log2);
    const std::uint64_t state = segments_.state(segment).load(simt::relaxed);
    simt::fence_stores();
    const std::uint32_t c = slab_state::kind(state) - 1;
    if (c >= shape_.classes) return rare<&basic_slab::free_large>(segment, state);
    const auto of_size = slab_sizes::reciprocal_of(c);
    const std::uint32_t slot = of_size.quotient(static_cast<std::uint32_t>(offset) & (segment_bytes() - 1));
    const simt::lane_mask group = simt::match_any(simt::coalesced(), segment * 128 + slot / 32);
    const std::uint32_t slots = simt::reduce_or(group, 1u << slot % 32);
    simt::sync_warp(group);
    if (simt::lane_id() != simt::lowest_bit(group)) return;
    const std::uint32_t capacity = of_size.quotient(segment_bytes());
    const std::uint32_t was = segments_.word(segment, slot / 32).fetch_or(slots, simt::after_fence);
    const std::uint64_t change =
        slab_segments::crossed(was, was | slots, slab_segments::present(capacity, slot / 32));
    if (change == 0) return;
    const std::uint64_t now = segments_.count(segment, change);
    if (slab_segments::is_event(now, change, c, (capacity + 31) / 32))
      rare<&basic_slab::settle>(segment, c, now, change);
  }

  /// How much of a block may be used: what was asked for, rounded up.
  QUARRY_DEVICE std::uint64_t usable_size(void* block) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_);
    const std::uint64_t state =
        segments_.state(static_cast<std::uint32_t>(offset >> shape_.segment_log2)).load(simt::relaxed);
    if (slab_state::kind(state) == slab_state::large)
      return std::uint64_t{slab_state::run_length(state)} << shape_.segment_log2;
    return slab_sizes::size_of(slab_state::kind(state) - 1);
  }

  /// See resizable_allocator, and slab_resize.hpp.
  QUARRY_DEVICE std::uint64_t resize(std::uint64_t from, std::uint64_t to) const;

  std::string check_invariants() const;
  heap_statistics statistics() const;
  template <class Visit>
  void visit_pieces(Visit&& visit) const;  // slab_inspect.hpp

 private:
  /// What a ticket turned out to be.
  struct drawn {
    slab_entry_word word;
    std::uint32_t slot;  // or no_slot
  };
  static constexpr std::uint32_t reserve_stride = 4;
  static constexpr std::uint32_t no_slot = ~std::uint32_t{0};
  static constexpr std::uint32_t patience = 256;

  QUARRY_DEVICE std::uint32_t segment_bytes() const { return 1u << shape_.segment_log2; }
  QUARRY_DEVICE std::uint64_t largest_slot() const { return segment_bytes() / 2; }
  QUARRY_DEVICE std::uint32_t shard() const { return simt::sm_id() & (shape_.shards - 1); }
  QUARRY_DEVICE void* slot(std::uint32_t segment, std::uint32_t c, std::uint32_t i) const {
    return pool_ + (std::uint64_t{segment} << shape_.segment_log2) + std::uint64_t{i} * slab_sizes::size_of(c);
  }

  /// The first slot of a mask from `i` on; end: none.
  QUARRY_DEVICE static std::uint32_t next_in(std::uint32_t* mask, std::uint32_t i, std::uint32_t end) {
    QUARRY_ROLLED
    for (; i < end; i = (i | 31) + 1) {
      const std::uint32_t rest = simt::atomic_ref<std::uint32_t>(mask[i / 32]).load(simt::relaxed) >> i % 32;
      if (rest != 0) return i + simt::lowest_bit(rest);
    }
    return end;
  }

  /// A ticket for each lane of the group.
  QUARRY_DEVICE slab_ticket draw_ticket(std::uint32_t c, const slab_class& d, std::uint32_t shard,
                                        simt::lane_mask group) const {
    const std::uint32_t rank = simt::popc(group & simt::lanes_below());
    std::uint64_t t = 0;
    if (rank == 0) t = rings_.cursor(c, shard).fetch_add(simt::popc(group), simt::relaxed);
    return slab_rings::take_apart(d, simt::shuffle(group, t, simt::lowest_bit(group)) + rank);
  }

  /// Where the tickets of a company lead, each in the ring of its class and shard. Those that are worth nothing are
  /// skipped, together with others like them.
  QUARRY_DEVICE drawn look_up(std::uint32_t c, std::uint32_t shard, simt::lane_mask company, slab_ticket ticket) const {
    const slab_class& d = classes_[c];
    slab_entry_word word{};
    std::uint32_t next = 0;  // the first ticket from this one on that may be worth something
    bool supplies = ticket.i == 0;
    // See slab_ring.hpp, how to wait.
    for (simt::lane_mask waiting = company; waiting != 0;) {
      bool found = false;
      if ((waiting >> simt::lane_id() & 1) != 0) {
        if (supplies && rings_.has_place(d, shard, ticket.entry)) {
          rare<&basic_slab::supply>(c, shard, ticket.entry);
          supplies = false;
        }
        found = rings_.look_up(d, shard, ticket.entry, word);
        if (!found) {
          simt::spin();
        } else if (word.is_recycled()) {
          next = next_in(rings_.mask(d, shard, ticket.entry), ticket.i, d.capacity);
        } else {
          next = word.is_fresh() ? ticket.i : d.capacity;
        }
      }
      // Lanes have read what they want before they vote.
      const simt::lane_mask here = simt::ballot(company, found && next <= d.capacity);
      if (found) {
        const auto entry = static_cast<std::uint32_t>(ticket.entry) << 11 | c << 5 | shard;
        const simt::lane_mask mates = simt::match_any(here, entry);
        if (simt::lane_id() == simt::lowest_bit(mates))
          rings_.looked_up(d, shard, ticket.entry, simt::popc(mates));
      }
      waiting &= ~here;
    }
    if (next != ticket.i) rare<&basic_slab::skip>(c, shard, ticket.entry, next);
    return {word, next == ticket.i ? ticket.i : no_slot};
  }

  /// Calls what is off the fast path; on *self_, so that kernels need not pass the members on.
  template <auto Member, class... Arguments>
  QUARRY_DEVICE auto rare(Arguments... arguments) const {
    return simt::out_of_line<Member>(self_, arguments...);
  }
  QUARRY_DEVICE void supply(std::uint32_t c, std::uint32_t shard, std::uint64_t k) const;
  QUARRY_DEVICE void* malloc_late(std::uint32_t c, simt::lane_mask company, slab_ticket ticket) const;
  QUARRY_DEVICE void* malloc_large(std::uint64_t n) const;
  QUARRY_DEVICE void free_large(std::uint32_t segment, std::uint64_t state) const;
  QUARRY_DEVICE void settle(std::uint32_t segment, std::uint32_t c, std::uint64_t state, std::uint64_t change) const {
    segments_.settle(segment, c, classes_[c], state, change);
  }
  /// The course of a lane that draws again: a shard, and whether it has flushed.
  static constexpr std::uint32_t after_flush = 256;
  static constexpr std::uint32_t no_course = ~std::uint32_t{0};
  QUARRY_DEVICE std::uint32_t change_course(std::uint32_t c, std::uint32_t course) const;
  QUARRY_DEVICE drawn draw_again(std::uint32_t c, std::uint32_t shard, simt::lane_mask company) const {
    const slab_ticket ticket = draw_ticket(c, classes_[c], shard, simt::match_any(company, c * after_flush + shard));
    return rare<&basic_slab::look_up>(c, shard, company, ticket);
  }
  QUARRY_DEVICE void skip(std::uint32_t c, std::uint32_t shard, std::uint64_t k, std::uint32_t i) const;
  QUARRY_DEVICE std::uint32_t ready_shard(std::uint32_t c, std::uint32_t after) const;
  QUARRY_DEVICE void give_back(std::uint32_t segment, std::uint32_t c, std::uint32_t w, std::uint32_t slots) const {
    segments_.give_back(segment, c, classes_[c], w, slots);
  }
  QUARRY_DEVICE std::uint32_t take_short_run(std::uint32_t segments) const {
    return segments_.free().take_short_run(segments, salt());
  }
  QUARRY_DEVICE std::uint32_t find_run(std::uint32_t segments, std::uint32_t from) const {
    return segments_.free().find_run(segments, from);
  }
  QUARRY_DEVICE bool take_run(std::uint32_t first, std::uint32_t segments) const {
    return segments_.free().take_all(first, segments);
  }
  QUARRY_DEVICE std::uint32_t take_used(std::uint32_t c, std::uint32_t least) const;
  QUARRY_DEVICE std::uint32_t take_free(std::uint32_t c) const;
  QUARRY_DEVICE std::uint32_t take_reserved(std::uint32_t shard) const;
  QUARRY_DEVICE std::uint32_t renew_reserve(std::uint32_t shard) const;
  QUARRY_DEVICE void return_reserve(std::uint64_t reserve) const;
  QUARRY_DEVICE std::uint64_t recycle(std::uint32_t segment, std::uint32_t c, std::uint32_t* mask,
                                      std::uint32_t least) const {
    return segments_.recycle(segment, c, classes_[c], mask, least);
  }
  QUARRY_DEVICE void let_go(std::uint32_t segment, std::uint32_t c, std::uint64_t change) const {
    segments_.let_go(segment, c, classes_[c], change);
  }
  QUARRY_DEVICE void flush() const;
  QUARRY_DEVICE void flush_ring(std::uint32_t c, std::uint32_t shard) const;
  QUARRY_DEVICE void return_slots(std::uint32_t c, std::uint32_t shard, std::uint64_t k, std::uint32_t first,
                                  slab_entry_word word) const;

  QUARRY_DEVICE slab_entry_word find_supply(std::uint32_t c, std::uint32_t shard, std::uint32_t* mask) const;
  QUARRY_DEVICE void publish(std::uint32_t c, std::uint32_t shard, std::uint64_t k, slab_entry_word word) const;
  QUARRY_DEVICE std::uint32_t salt() const {
    return simt::scramble(static_cast<std::uint32_t>(simt::global_thread()) * 64 + simt::clock());
  }

  /// Between kernels: slots of a class that rings hold and nobody asked for yet.
  std::uint64_t drawn_up(std::uint32_t c) const;
  bool is_reserved(std::uint32_t segment) const;

  std::byte* pool_;
  shape_type shape_;
  basic_slab* self_;
  slab_class* classes_;
  std::uint64_t* supplied_;  // a word per shard, a bit per class: its ring may hold slots
  std::uint64_t* reserves_;  // a word per shard: free segments side by side
  slab_rings rings_;
  slab_segments segments_;
};

using slab = basic_slab<>;

}  // namespace quarry

#include <quarry/pool/slab_impl.hpp>     // IWYU pragma: export
#include <quarry/pool/slab_inspect.hpp>  // IWYU pragma: export
#include <quarry/pool/slab_resize.hpp>   // IWYU pragma: export
