// SPDX-License-Identifier: Apache-2.0
#pragma once
/// checked: finds what a program does wrong with its memory, over any allocator, and names it.
///
///   quarry::heap<quarry::checked<quarry::cfmalloc>> heap(1_GiB);
///   kernel<<<…>>>(heap.ref());
///   std::puts(to_text(report(heap)).c_str());     // "double free, 1 time: thread 7 (block 0) freed …"
///   std::puts(to_text(leaks(heap)).c_str());      // what is live: "3 blocks of 64 bytes, …"
///   heap.check();                                 // or: an exception if anything was found
///
///   block of the upstream   | guard 16 | n bytes of the user | guard 16 … 31 |
///   metadata                registry of blocks (checked_registry.hpp), quarantine, findings
///
/// malloc: asks for room for the guards, paints them (checked_guards.hpp) and registers the block.
/// free: claims the block in the registry. Where it is not there, the pointer is named (double free,
/// interior, foreign) and nothing else happens. Where it is, the guards are looked at, the block is
/// filled with a pattern and waits in the quarantine. When it leaves, to make room or because the
/// upstream has nothing left, the pattern must be intact; then the upstream gets it.
/// inspect: looks at the guards of all live blocks and at all that waits. heap runs it before it
/// answers check(), check_invariants() and report(). What was found is repaired: it counts once.
///
/// No pointer that is freed is followed: it is looked up. A wrong one can not make a kernel fault.
///
/// What is found, and what not
///   double free     always noticed, and called so while the block waits and until another takes its
///                   place in the registry; called a foreign pointer after that. Not, if the upstream
///                   has handed out that very address again: then somebody else's block is freed.
///   foreign,        always noticed. Which of the two: always where the block begins up to 1 KiB
///   interior        before; else for the first 32 wrong pointers (each walks through the registry),
///                   later ones count as foreign.
///   overrun,        writes to the guards, when the block is freed or inspected. Not: reads; writes that
///   underrun        skip the guards.
///   use after free  writes to the first `watched` bytes of a block that waits. Not: reads (they see the
///                   pattern); writes after the block has left.
///   leaks           exact: what is registered and live.
/// Each kind is reported with its count and its first case. The reports end with heap::reset(). A heap's
/// destructor says nothing: kernels may leave blocks to the end of the heap by intent. Ask leaks() before.
///
/// Capacity: one slot of the registry for every `pool_per_block` bytes of the pool, a power of two. When
/// a block finds no slot, malloc refuses and the finding registry_full says so; over an upstream that
/// does not free, the block is handed out and not watched.
///
/// Cost. Memory: 32 … 47 bytes a block; up to `quarantine` freed blocks; 24 bytes of metadata a slot, with
/// the defaults 19 % of the pool. Accesses beyond those of the upstream: malloc 1 load, 1 atomic and 3
/// stores where the registry is not crowded, and the guards are written; free, with a full quarantine, 18
/// loads, 4 atomics and 3 stores, the guards are read, one block is filled and another read. Nothing is
/// shared by a warp. Put it on top: under coalesce or a warp_arena it sees their blocks, not the user's.
///
/// Invariant (quiescent): blocks in the quarantine = slots that wait, each once.
/// Ordering: enqueue releases and dequeue acquires, so the fill is seen by who looks at it. That the
/// next owner comes after the last one is the upstream's affair, as without this layer.
/// Bound: at most two requests upstream and one drain, which takes each FIFO's capacity at most. A lane
/// that finds a FIFO full twice lets its own block go. While another lane carries the last free block
/// from the quarantine to the upstream, a call may be refused.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/layer/checked/guards.hpp>
#include <quarry/layer/checked/quarantine.hpp>
#include <quarry/layer/checked/registry.hpp>
#include <quarry/layer/checked/report.hpp>
#include <quarry/simt/atomic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace quarry {

struct checking {
  std::uint32_t quarantine = 1024;     // freed blocks that wait, a power of two; 0: none
  std::uint32_t fifos = 32;            // in so many FIFOs, lest all lanes meet at one
  std::uint32_t pool_per_block = 128;  // the registry has a slot for so many bytes of the pool
  std::uint32_t watched = 4096;        // bytes of a freed block that are filled and looked at
};

template <allocator Upstream, checking How = checking{}>
class checked {
  static_assert(!Upstream::can.overwrites,
                "blocks that are overwritten by design can not be watched");
  static_assert(How.quarantine == 0 || (How.fifos != 0 && How.quarantine >= How.fifos &&
                                        is_power_of_two(How.quarantine / How.fifos)));
  static_assert(How.pool_per_block != 0);
  static constexpr std::uint64_t guard = block_alignment;
  static constexpr bool delays = How.quarantine != 0 && Upstream::can.frees_one;
  using waiting_room = quarantine<delays ? How.fifos : 0, delays ? How.quarantine / How.fifos : 1>;

 public:
  static constexpr abilities can = [] {
    abilities c = Upstream::can;
    if (c.max_size != ~std::uint64_t{0}) c.max_size = align_down(c.max_size, 16) - 2 * guard;
    c.max_alignment = block_alignment;
    return c;
  }();

  checked() = default;
  checked(memory_range pool, carve& metadata)
      : upstream_(pool, metadata),
        pool_(reinterpret_cast<std::uint64_t>(pool.begin)),
        pool_size_(pool.size),
        registry_(metadata, pool.size / How.pool_per_block),
        quarantine_(metadata),
        records_(metadata),
        searches_(metadata.take<std::uint32_t>("searches", 1)),
        copy_(metadata.take<checked>("handle", 1)) {}

  template <class Backend>
  static void reserve(std::uint64_t size) requires requires {
    Upstream::template reserve<Backend>(size);
  }
  { Upstream::template reserve<Backend>(size); }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    upstream_.initialise(lane, lanes);
    quarantine_.initialise(lane, lanes);
    if (lane == 0) *copy_ = *this;
  }

  // Both are calls, and get the copy of the handle that is in the metadata: a kernel that is checked
  // should not grow by all of this at every malloc.
  QUARRY_DEVICE void* malloc(std::size_t n) const { return n == 0 ? nullptr : serve(*copy_, n); }
  QUARRY_DEVICE void free(void* p) const requires(can.frees_one) {
    if (p != nullptr) take_back(*copy_, p);
  }

  /// Lets everything in the quarantine go. One lane is enough.
  QUARRY_DEVICE void drain() const requires(can.frees_one) {
    let_all_go();
    if constexpr (requires(const Upstream u) { u.drain(); }) upstream_.drain();
  }

  QUARRY_DEVICE std::uint64_t resize(std::uint64_t from, std::uint64_t to) const requires
      resizable_allocator<Upstream> {
    return upstream_.resize(from, to);
  }

  /// The share of one lane out of `lanes`, between kernels, on the machine.
  QUARRY_DEVICE void inspect(std::uint64_t lane, std::uint64_t lanes) const;

  // On the host, between kernels; metadata only.
  std::vector<finding> report() const { return records_.report(); }
  std::vector<leak> leaks() const;  // by size
  std::string check_invariants() const;
  heap_statistics statistics() const;
  const Upstream& upstream() const { return upstream_; }

 private:
  static constexpr std::uint32_t most_searches = 32;

  QUARRY_DEVICE static std::uint64_t footprint(std::uint64_t n) {
    return saturating_add(align_up(n, block_alignment), 2 * guard);
  }
  QUARRY_DEVICE static painted front(std::byte* block) {
    return painted(block - guard, guard, painted::guard);
  }
  QUARRY_DEVICE static painted back(std::byte* block, std::uint64_t n) {
    return painted(block + n, footprint(n) - guard - n, painted::guard);
  }
  QUARRY_DEVICE static painted inside(std::byte* block, std::uint64_t n) {
    return painted(block, n < How.watched ? n : How.watched, painted::freed);
  }

  QUARRY_DEVICE QUARRY_NOINLINE static void* serve(const checked& self, std::uint64_t n);
  QUARRY_DEVICE QUARRY_NOINLINE static void take_back(const checked& self, void* p);
  QUARRY_DEVICE QUARRY_NOINLINE static void name_pointer(const checked& self, std::uint64_t pointer,
                                                         std::uint32_t former);
  QUARRY_DEVICE void look_at_guards(std::byte* block, std::uint64_t n, std::uint64_t owner,
                                    std::uint64_t noticed_by) const;
  QUARRY_DEVICE void look_inside(std::byte* block, std::uint64_t n, std::uint64_t freed_by,
                                 std::uint64_t noticed_by) const;
  QUARRY_DEVICE void let_go(std::uint32_t slot) const;
  QUARRY_DEVICE void let_all_go() const {
    if constexpr (delays) quarantine_.empty([this](std::uint32_t slot) { let_go(slot); });
  }

  Upstream upstream_;
  std::uint64_t pool_;
  std::uint64_t pool_size_;
  block_registry registry_;
  waiting_room quarantine_;
  misuse_records records_;
  std::uint32_t* searches_;
  checked* copy_;
};

/// Looks through a heap whose allocator is checked, and tells what was found since it was made or reset.
template <class Heap>
  requires requires(const typename Heap::allocator_type a) { a.report(); }
std::vector<finding> report(const Heap& heap) {
  heap.inspect();
  return heap.on_host([](const auto& a) { return a.report(); });
}
/// What is live: at the end of a program, what was never freed.
template <class Heap>
  requires requires(const typename Heap::allocator_type a) { a.leaks(); }
std::vector<leak> leaks(const Heap& heap) {
  return heap.on_host([](const auto& a) { return a.leaks(); });
}

// ---- malloc and free -----------------------------------------------------------------------------

template <allocator U, checking How>
QUARRY_DEVICE void* checked<U, How>::serve(const checked& self, std::uint64_t n) {
  if (footprint(n) > self.pool_size_) return nullptr;
  auto* raw = static_cast<std::byte*>(self.upstream_.malloc(footprint(n)));
  if (delays && raw == nullptr) {
    self.let_all_go();
    raw = static_cast<std::byte*>(self.upstream_.malloc(footprint(n)));
  }
  if (raw == nullptr) return nullptr;
  std::byte* const block = raw + guard;
  front(block).fill();
  back(block, n).fill();
  const std::uint64_t me = caller::here();
  if (self.registry_.insert(block, n, me) != block_registry::none) return block;
  if (delays) {
    self.let_all_go();
    if (self.registry_.insert(block, n, me) != block_registry::none) return block;
  }
  self.records_.note(misuse::registry_full, reinterpret_cast<std::uint64_t>(block), n, 0, me, 0);
  if constexpr (can.frees_one) {
    self.upstream_.free(raw);
    return nullptr;
  }
  return block;
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::take_back(const checked& self, void* p) {
  const auto pointer = reinterpret_cast<std::uint64_t>(p);
  const auto claim = self.registry_.claim(pointer);
  if (claim.slot == block_registry::none) return name_pointer(self, pointer, claim.former);
  const auto known = self.registry_.at(claim.slot);
  const std::uint64_t me = caller::here();
  self.look_at_guards(known.block, known.size, known.lane, me);
  inside(known.block, known.size).fill();
  self.registry_.retire(claim.slot, me);
  self.quarantine_.put(claim.slot, [&](std::uint32_t slot) { self.let_go(slot); });
}

/// A pointer that is no live block's was freed.
template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::name_pointer(const checked& self, std::uint64_t pointer,
                                                 std::uint32_t former) {
  const std::uint64_t me = caller::here();
  if (former != block_registry::none) {
    const auto known = self.registry_.at(former);
    const bool by_that_lane =
        known.now == block_registry::waiting || known.now == block_registry::gone;
    return self.records_.note(misuse::double_free, pointer, known.size, 0, me,
                              by_that_lane ? known.lane : 0);
  }
  if (!can.owns_pool || pointer - self.pool_ < self.pool_size_) {
    const bool everywhere =
        simt::atomic_ref<std::uint32_t>(*self.searches_).load(simt::relaxed) < most_searches &&
        simt::atomic_ref<std::uint32_t>(*self.searches_).fetch_add(1, simt::relaxed) <
            most_searches;
    const std::uint32_t slot = self.registry_.around(pointer, everywhere);
    if (slot != block_registry::none) {
      const auto known = self.registry_.at(slot);
      const auto address = reinterpret_cast<std::uint64_t>(known.block);
      return self.records_.note(misuse::interior_pointer, address, known.size, pointer - address,
                                me, known.lane);
    }
  }
  self.records_.note(misuse::foreign_pointer, pointer, 0, 0, me, 0);
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::let_go(std::uint32_t slot) const {
  const auto known = registry_.at(slot);
  look_inside(known.block, known.size, known.lane, caller::here());
  registry_.forget(slot);
  upstream_.free(known.block - guard);
}

// ---- looking -------------------------------------------------------------------------------------

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::look_at_guards(std::byte* block, std::uint64_t n,
                                                   std::uint64_t owner,
                                                   std::uint64_t noticed_by) const {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (const std::uint64_t at = back(block, n).damage(); at != painted::nothing) {
    records_.note(misuse::overrun, address, n, n + at, owner, noticed_by);
    back(block, n).fill();
  }
  if (const std::uint64_t at = front(block).damage(); at != painted::nothing) {
    records_.note(misuse::underrun, address, n, at - guard, owner, noticed_by);
    front(block).fill();
  }
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::look_inside(std::byte* block, std::uint64_t n,
                                                std::uint64_t freed_by,
                                                std::uint64_t noticed_by) const {
  const std::uint64_t at = inside(block, n).damage();
  if (at == painted::nothing) return;
  records_.note(misuse::use_after_free, reinterpret_cast<std::uint64_t>(block), n, at, freed_by,
                noticed_by);
  inside(block, n).fill();
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::inspect(std::uint64_t lane, std::uint64_t lanes) const {
  for (std::uint64_t i = lane; i < registry_.slots(); i += lanes) {
    const auto known = registry_.at(static_cast<std::uint32_t>(i));
    if (known.now == block_registry::live) look_at_guards(known.block, known.size, known.lane, 0);
    if (known.now == block_registry::waiting) look_inside(known.block, known.size, known.lane, 0);
  }
}

// ---- between kernels -----------------------------------------------------------------------------

template <allocator U, checking How>
std::vector<leak> checked<U, How>::leaks() const {
  std::map<std::uint64_t, leak> by_size;
  for (std::uint32_t i = 0; i < registry_.slots(); ++i) {
    const auto known = registry_.at(i);
    if (known.now != block_registry::live) continue;
    leak& l = by_size[known.size];
    if (++l.count != 1) continue;
    l.size = known.size;
    l.lane = caller::unpack(known.lane);
    l.address = reinterpret_cast<std::uint64_t>(known.block);
  }
  std::vector<leak> found;
  for (const auto& [size, l] : by_size) found.push_back(l);
  return found;
}

/// What the heap's users did wrong is a problem, too.
template <allocator U, checking How>
std::string checked<U, How>::check_invariants() const {
  if (std::string problem = upstream_.check_invariants(); !problem.empty()) return problem;
  if (std::string problem = registry_.check_invariants(); !problem.empty()) return problem;
  if (std::string problem = quarantine_.check_invariants(registry_); !problem.empty())
    return problem;
  std::string text = to_text(report());
  if (!text.empty()) text.pop_back();
  return text;
}

/// What waits counts as free. As in buffer, live bytes are a little too many where the upstream rounds
/// blocks up, but none when no block is live.
template <allocator U, checking How>
heap_statistics checked<U, How>::statistics() const {
  heap_statistics s = upstream_.statistics();
  std::uint64_t live = 0;
  std::uint64_t freed = 0;
  for (std::uint32_t i = 0; i < registry_.slots(); ++i) {
    const auto known = registry_.at(i);
    live += known.now == block_registry::live;
    if (known.now == block_registry::waiting) freed += footprint(known.size);
  }
  if (can.frees_one) s.live_blocks = live;
  if (s.live_bytes) {
    if (freed > *s.live_bytes || (can.frees_one && live == 0)) freed = *s.live_bytes;
    *s.live_bytes -= freed;
  }
  if (s.free_bytes) *s.free_bytes += freed;
  if (freed != 0) s.largest_free.reset();
  if (s.largest_free) *s.largest_free -= std::min<std::uint64_t>(*s.largest_free, 2 * guard);
  return s;
}

}  // namespace quarry
