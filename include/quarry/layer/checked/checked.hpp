// SPDX-License-Identifier: Apache-2.0
#pragma once
/// checked: detects and reports misuse of memory, over any allocator.
///
///   quarry::heap<quarry::checked<quarry::cfmalloc>> heap(1_GiB);
///   kernel<<<…>>>(heap.ref());
///   std::puts(to_text(report(heap)).c_str());   // "double free, 1 time: thread 7 …"
///   std::puts(to_text(leaks(heap)).c_str());    // the live blocks: "3 blocks of 64 bytes, …"
///   heap.check();                               // throws if a misuse was detected
///
///   block of the upstream   | guard 16 | n bytes of the user | guard 16 … 31 |
///   metadata                registry of blocks (registry.hpp), quarantine, findings
///
/// malloc allocates the block with its guards, fills the guards with a pattern (guards.hpp) and
/// registers the block.
///
/// free claims the block in the registry. If the pointer is not a live block, free classifies it
/// (double free, interior, foreign), records a finding, and has no other effect. Otherwise free
/// checks the guards, fills the block with a pattern, and moves it to the quarantine. A block
/// leaves the quarantine to make room, or because the upstream is exhausted; then its pattern is
/// checked, and the upstream frees it.
///
/// inspect checks the guards of all live blocks and the pattern of all quarantined blocks. heap
/// calls it in check(), check_invariants() and report(). A detected overwrite is repaired, so it
/// counts once.
///
/// No freed pointer is dereferenced: it is looked up. A wrong pointer cannot make a kernel fault.
///
/// Detection
///   double free     Always detected. Reported as such while the block is in quarantine, and until
///                   another block takes its slot in the registry; as a foreign pointer afterwards.
///                   Exception: if the upstream has returned the same address again, another
///                   owner's block is freed.
///   foreign,        Always detected. The kinds are distinguished if the block begins at most 1 KiB
///   interior        before the pointer, and otherwise for the first 32 wrong pointers, since each
///                   takes a scan of the registry; later ones count as foreign.
///   overrun,        Writes to the guards, when the block is freed or inspected.
///   underrun        Not detected: reads, and writes that skip the guards.
///   use after free  Writes to the first `watched` bytes of a quarantined block. Not detected:
///                   reads (they see the pattern), and writes after the block has left the
///                   quarantine.
///   leaks           Exact: the registered live blocks.
/// Each kind is reported with its count and its first case. heap::reset() discards the findings.
/// The destructor of a heap reports nothing, since kernels may leave blocks for it on purpose; call
/// leaks() before.
///
/// Capacity: one slot of the registry per `pool_per_block` bytes of the pool, rounded to a power of
/// two. If a block finds no slot, malloc fails and records the finding registry_full; over an
/// upstream that cannot free, malloc returns the block, which is then not checked.
///
/// Cost. Memory: 32 … 47 bytes per block; up to `quarantine` freed blocks; 24 bytes of metadata per
/// slot, 19 % of the pool with the defaults. Accesses in addition to those of the upstream: malloc
/// has 1 load, 1 atomic and 3 stores if the first slot is available, and writes the guards; free,
/// with a full quarantine, has 18 loads, 4 atomics and 3 stores, reads the guards, fills one block
/// and reads another. Nothing is warp-aggregated. checked should be the outermost layer: below
/// warp_aggregated or warp_arena it sees their blocks instead of the user's.
///
/// Invariant (quiescent): the blocks in the quarantine are the slots in state `quarantined`, each
/// once.
/// Ordering: enqueue releases and dequeue acquires, so the fill happens before its check. The
/// upstream orders the accesses of the previous and the next owner of a block, as without this
/// layer.
/// Progress: at most two calls of the upstream's malloc and one eviction of the whole quarantine,
/// at most the capacity of each FIFO. A lane that finds a FIFO full twice evicts its own block. A
/// call may fail while another lane moves the last free block from the quarantine to the upstream.

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
  std::uint32_t quarantine = 1024;     // capacity in blocks, a power of two; 0: no quarantine
  std::uint32_t fifos = 32;            // of the quarantine; more FIFOs have less contention
  std::uint32_t pool_per_block = 128;  // bytes of the pool per slot of the registry
  std::uint32_t watched = 4096;        // bytes of a freed block that are filled and checked
};

template <allocator Upstream, checking How = checking{}>
class checked {
  static_assert(!Upstream::can.overwrites,
                "checked cannot check an allocator that overwrites live blocks by design");
  static_assert(How.quarantine == 0 || (How.fifos != 0 && How.quarantine >= How.fifos &&
                                        is_power_of_two(How.quarantine / How.fifos)));
  static_assert(How.pool_per_block != 0);
  static constexpr std::uint64_t guard = block_alignment;
  static constexpr bool has_quarantine = How.quarantine != 0 && Upstream::can.frees_one;
  using quarantine_type =
      quarantine<has_quarantine ? How.fifos : 0, has_quarantine ? How.quarantine / How.fifos : 1>;

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
        scans_(metadata.take<std::uint32_t>("scans", 1)),
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

  // Both call functions out of line, with the copy of the handle in the metadata, to limit the code
  // size of kernels.
  QUARRY_DEVICE void* malloc(std::size_t n) const { return n == 0 ? nullptr : allocate(*copy_, n); }
  QUARRY_DEVICE void free(void* p) const requires(can.frees_one) {
    if (p != nullptr) release(*copy_, p);
  }

  /// Frees all quarantined blocks to the upstream, and drains the upstream. One lane suffices.
  QUARRY_DEVICE void drain() const requires(can.frees_one) {
    evict_all();
    if constexpr (requires(const Upstream u) { u.drain(); }) upstream_.drain();
  }

  QUARRY_DEVICE std::uint64_t resize(std::uint64_t from, std::uint64_t to) const requires
      resizable_allocator<Upstream> {
    return upstream_.resize(from, to);
  }

  /// Checks the slots of lane `lane` out of `lanes`. On the backend; no other call may be in
  /// progress.
  QUARRY_DEVICE void inspect(std::uint64_t lane, std::uint64_t lanes) const;

  // On the host. Requires quiescence. Reads metadata only.
  std::vector<finding> report() const { return records_.report(); }
  std::vector<leak> leaks() const;  // by size
  std::string check_invariants() const;
  heap_statistics statistics() const;
  const Upstream& upstream() const { return upstream_; }

 private:
  static constexpr std::uint32_t max_scans = 32;

  QUARRY_DEVICE static std::uint64_t footprint(std::uint64_t n) {
    return saturating_add(align_up(n, block_alignment), 2 * guard);
  }
  QUARRY_DEVICE static pattern_range front(std::byte* block) {
    return pattern_range(block - guard, guard, pattern_range::guard);
  }
  QUARRY_DEVICE static pattern_range back(std::byte* block, std::uint64_t n) {
    return pattern_range(block + n, footprint(n) - guard - n, pattern_range::guard);
  }
  QUARRY_DEVICE static pattern_range inside(std::byte* block, std::uint64_t n) {
    return pattern_range(block, n < How.watched ? n : How.watched, pattern_range::freed);
  }

  QUARRY_DEVICE_NOINLINE static void* allocate(const checked& self, std::uint64_t n);
  QUARRY_DEVICE_NOINLINE static void release(const checked& self, void* p);
  QUARRY_DEVICE_NOINLINE static void record_wrong_pointer(const checked& self,
                                                          std::uint64_t pointer,
                                                          std::uint32_t freed_before);
  QUARRY_DEVICE void check_guards(std::byte* block, std::uint64_t n, std::uint64_t owner,
                                  std::uint64_t detected_by) const;
  QUARRY_DEVICE void check_pattern(std::byte* block, std::uint64_t n, std::uint64_t freed_by,
                                   std::uint64_t detected_by) const;
  QUARRY_DEVICE void evict(std::uint32_t slot) const;
  QUARRY_DEVICE void evict_all() const {
    if constexpr (has_quarantine)
      quarantine_.evict_all([this](std::uint32_t slot) { evict(slot); });
  }

  Upstream upstream_;
  std::uint64_t pool_;
  std::uint64_t pool_size_;
  block_registry registry_;
  quarantine_type quarantine_;
  misuse_records records_;
  std::uint32_t* scans_;
  checked* copy_;
};

/// Inspects a heap whose allocator is checked. Returns all findings since its construction or last
/// reset.
template <class Heap>
  requires requires(const typename Heap::allocator_type a) { a.report(); }
std::vector<finding> report(const Heap& heap) {
  heap.inspect();
  return heap.on_host([](const auto& a) { return a.report(); });
}
/// Returns the live blocks; at the end of a program, these are leaks.
template <class Heap>
  requires requires(const typename Heap::allocator_type a) { a.leaks(); }
std::vector<leak> leaks(const Heap& heap) {
  return heap.on_host([](const auto& a) { return a.leaks(); });
}

// ---- malloc and free ---------------------------------------------------------------------------

template <allocator U, checking How>
QUARRY_DEVICE void* checked<U, How>::allocate(const checked& self, std::uint64_t n) {
  if (footprint(n) > self.pool_size_) return nullptr;
  auto* raw = static_cast<std::byte*>(self.upstream_.malloc(footprint(n)));
  if (has_quarantine && raw == nullptr) {
    self.evict_all();
    raw = static_cast<std::byte*>(self.upstream_.malloc(footprint(n)));
  }
  if (raw == nullptr) return nullptr;
  std::byte* const block = raw + guard;
  front(block).fill();
  back(block, n).fill();
  const std::uint64_t me = caller::here();
  if (self.registry_.insert(block, n, me) != block_registry::none) return block;
  if (has_quarantine) {
    self.evict_all();
    if (self.registry_.insert(block, n, me) != block_registry::none) return block;
  }
  self.records_.add(misuse::registry_full, reinterpret_cast<std::uint64_t>(block), n, 0, me, 0);
  if constexpr (can.frees_one) {
    self.upstream_.free(raw);
    return nullptr;
  }
  return block;
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::release(const checked& self, void* p) {
  const auto pointer = reinterpret_cast<std::uint64_t>(p);
  const auto claim = self.registry_.claim(pointer);
  if (claim.slot == block_registry::none)
    return record_wrong_pointer(self, pointer, claim.freed_before);
  const auto known = self.registry_.at(claim.slot);
  const std::uint64_t me = caller::here();
  self.check_guards(known.block, known.size, known.lane, me);
  inside(known.block, known.size).fill();
  self.registry_.mark_quarantined(claim.slot, me);
  self.quarantine_.insert(claim.slot, [&](std::uint32_t slot) { self.evict(slot); });
}

/// Records the free of a pointer that is not a live block.
template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::record_wrong_pointer(const checked& self, std::uint64_t pointer,
                                                         std::uint32_t freed_before) {
  const std::uint64_t me = caller::here();
  if (freed_before != block_registry::none) {
    const auto known = self.registry_.at(freed_before);
    const bool by_that_lane =
        known.status == block_registry::quarantined || known.status == block_registry::freed;
    return self.records_.add(misuse::double_free, pointer, known.size, 0, me,
                             by_that_lane ? known.lane : 0);
  }
  if (!can.owns_pool || pointer - self.pool_ < self.pool_size_) {
    const bool everywhere =
        simt::atomic_ref<std::uint32_t>(*self.scans_).load(simt::relaxed) < max_scans &&
        simt::atomic_ref<std::uint32_t>(*self.scans_).fetch_add(1, simt::relaxed) < max_scans;
    const std::uint32_t slot = self.registry_.find_containing(pointer, everywhere);
    if (slot != block_registry::none) {
      const auto known = self.registry_.at(slot);
      const auto address = reinterpret_cast<std::uint64_t>(known.block);
      return self.records_.add(misuse::interior_pointer, address, known.size, pointer - address, me,
                               known.lane);
    }
  }
  self.records_.add(misuse::foreign_pointer, pointer, 0, 0, me, 0);
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::evict(std::uint32_t slot) const {
  const auto known = registry_.at(slot);
  check_pattern(known.block, known.size, known.lane, caller::here());
  registry_.mark_freed(slot);
  upstream_.free(known.block - guard);
}

// ---- checks ------------------------------------------------------------------------------------

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::check_guards(std::byte* block, std::uint64_t n,
                                                 std::uint64_t owner,
                                                 std::uint64_t detected_by) const {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (const std::uint64_t at = back(block, n).first_mismatch(); at != pattern_range::none) {
    records_.add(misuse::overrun, address, n, n + at, owner, detected_by);
    back(block, n).fill();
  }
  if (const std::uint64_t at = front(block).first_mismatch(); at != pattern_range::none) {
    records_.add(misuse::underrun, address, n, at - guard, owner, detected_by);
    front(block).fill();
  }
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::check_pattern(std::byte* block, std::uint64_t n,
                                                  std::uint64_t freed_by,
                                                  std::uint64_t detected_by) const {
  const std::uint64_t at = inside(block, n).first_mismatch();
  if (at == pattern_range::none) return;
  records_.add(misuse::use_after_free, reinterpret_cast<std::uint64_t>(block), n, at, freed_by,
               detected_by);
  inside(block, n).fill();
}

template <allocator U, checking How>
QUARRY_DEVICE void checked<U, How>::inspect(std::uint64_t lane, std::uint64_t lanes) const {
  for (std::uint64_t i = lane; i < registry_.slots(); i += lanes) {
    const auto known = registry_.at(static_cast<std::uint32_t>(i));
    if (known.status == block_registry::live) check_guards(known.block, known.size, known.lane, 0);
    if (known.status == block_registry::quarantined)
      check_pattern(known.block, known.size, known.lane, 0);
  }
}

// ---- host --------------------------------------------------------------------------------------

template <allocator U, checking How>
std::vector<leak> checked<U, How>::leaks() const {
  std::map<std::uint64_t, leak> by_size;
  for (std::uint32_t i = 0; i < registry_.slots(); ++i) {
    const auto known = registry_.at(i);
    if (known.status != block_registry::live) continue;
    leak& l = by_size[known.size];
    if (++l.count != 1) continue;
    l.size = known.size;
    l.lane = caller::unpack(known.lane);
    l.address = reinterpret_cast<std::uint64_t>(known.block);
  }
  std::vector<leak> found;
  found.reserve(by_size.size());
  for (const auto& [size, l] : by_size) found.push_back(l);
  return found;
}

/// Findings count as violations too.
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

/// Quarantined blocks count as free. As in buffer, live_bytes is slightly too high if the upstream
/// rounds sizes up, but it is 0 if no block is live.
template <allocator U, checking How>
heap_statistics checked<U, How>::statistics() const {
  heap_statistics s = upstream_.statistics();
  std::uint64_t live = 0;
  std::uint64_t freed = 0;
  for (std::uint32_t i = 0; i < registry_.slots(); ++i) {
    const auto known = registry_.at(i);
    live += known.status == block_registry::live;
    if (known.status == block_registry::quarantined) freed += footprint(known.size);
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
