// SPDX-License-Identifier: Apache-2.0
#pragma once
/// buffer: caches freed blocks for later requests of the same size class. XMalloc's second stage
/// (Huang et al. 2013, 5.2), over any allocator that can free.
///
///   class     32     48     64     80  …      bytes, including the block's header
///   FIFOs    ||||   ||||   ||||   ||||        of each class
///   block    | - | class | user bytes …… |    a block of the upstream with a header of 16 bytes
///
/// malloc chooses one FIFO of the class by a hash of thread, block and clock. If the FIFO is empty,
/// malloc tries up to seven others and then calls the upstream. free chooses a FIFO in the same
/// manner and enqueues the block. Several FIFOs reduce the contention for head and tail. Requests
/// above the largest class bypass the cache. The default, 40 KiB, covers the area that
/// warp_aggregated makes of 32 requests.
///
/// Capacity. The upstream is slow: a warp that calls it waits as long as hundreds of warps that do
/// not. A class should therefore hold a block for every resident warp, about 8,000 on a large GPU.
/// The paper has 256 blocks per class in 1 to 64 FIFOs; `Fifos` selects the exact number. Fifos = 0
/// derives the number from the pool: FIFOs of 64 blocks, as many as make 1/64 of the pool, from 1
/// to 256. In a pool of 1 GiB a class has capacity for 16,384 blocks of up to 1280 bytes, or for
/// 512 of 40 KiB. A block may lie in another FIFO than the hash chooses; eight attempts compensate
/// for this. Once each warp has had a block, hardly any warp calls the upstream
/// (tests/layer/buffer_resident_test.cpp).
///
/// Cached memory is at most max_cached_bytes(). By default this is less than half of the pool (or
/// all of a small pool: 64 blocks of each class are 15 MiB), and only if every class was in full
/// use once. An allocation must not fail because memory is cached. If the upstream fails:
///   1. malloc tries all FIFOs of the class.
///   2. If all are empty, malloc frees the blocks of all FIFOs to the upstream, which can then
///      merge them, and calls the upstream again, with the requested size instead of the class
///      size.
/// malloc does not return a block of a larger class, since requests of that class need it. drain()
/// is step 2 alone. New blocks are placed around cached blocks. Over an upstream that cannot use
/// every gap, the memory of freed blocks is fully reusable only after drain(): a circular pool that
/// is filled with 1000-byte blocks right after small blocks were freed holds about a tenth fewer of
/// them than a new pool.
///
/// A FIFO holds 32-bit values: the distance of a block from a base address, in units of 16 bytes.
/// This covers an address window of 64 GiB. If the upstream owns its pool, the window starts at the
/// pool. Otherwise (CUDA's device heap) the first freed block is the middle of the window. Blocks
/// outside the window are not cached.
///
/// drain() skips classes of which no block was ever allocated. A lane that allocates the first
/// block of a class from the upstream sets the class bit in `allocated_classes`. Bits are never
/// cleared, so the test costs one load on a path that calls the upstream anyway. There are several
/// such words to avoid contention.
///
/// Invariant (quiescent): a block in a FIFO of class c has c in its header; it is in no other FIFO
/// and not live.
/// Ordering: enqueue releases and dequeue acquires, so the accesses of the previous owner happen
/// before those of the next one. The header is written once, before the block is returned for the
/// first time.
/// Progress: the FIFOs are lock-free. A call invokes the upstream's malloc at most twice and
/// dequeues at most the capacity of each FIFO. A call may fail while another lane moves the last
/// free block between a FIFO and the upstream.

#include <quarry/concurrent/bounded_fifo.hpp>
#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/core/size_classes.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry {

/// Fifos, BlocksPerClass: their number per class. With Fifos = 0, BlocksPerClass is an upper bound
/// and the size of the pool determines both.
template <freeing_allocator Upstream, std::uint32_t Fifos = 0, std::uint32_t Largest = 40960,
          std::uint32_t BlocksPerClass = (Fifos == 0 ? 1u << 14 : 1u << 8)>
class buffer {
  static constexpr std::uint32_t header_size = 16;
  static constexpr std::uint32_t max_fifos = Fifos == 0 ? 256 : Fifos;
  static_assert(is_power_of_two(max_fifos) && max_fifos <= 1024,
                "the number of FIFOs per class is a power of two up to 1024");
  static_assert(is_power_of_two(BlocksPerClass) && BlocksPerClass >= max_fifos);

 public:
  using classes = size_classes<32, Largest>;  // including the header
  using fifo = bounded_fifo<BlocksPerClass / max_fifos>;
  static_assert(classes::count <= 64, "one bit per class in a word");

  static constexpr abilities can = [] {
    abilities c = Upstream::can;
    if (c.max_size != ~std::uint64_t{0}) c.max_size -= header_size;
    c.max_alignment = block_alignment;
    return c;
  }();

  /// An upper bound of the bytes in all FIFOs, as requested from the upstream.
  static constexpr std::uint64_t max_cached_bytes(std::uint64_t pool) {
    std::uint64_t sum = 0;
    for (std::uint32_t c = 0; c < classes::count; ++c)
      sum += std::uint64_t{classes::sizes[c]} * (last_fifo(c, fifo_mask_for(pool)) + 1);
    return sum * fifo::capacity;
  }

  buffer() = default;
  buffer(memory_range pool, carve& metadata)
      : upstream_(pool, metadata),
        pool_(pool.begin),
        pool_size_(pool.size),
        max_fifo_mask_(fifo_mask_for(pool.size)),
        fifos_(metadata.take<storage>("fifos", std::uint64_t{classes::count} * width())),
        allocated_classes_(
            metadata.take<std::uint64_t>("allocated classes", std::uint64_t{width()} * stride)),
        window_(metadata.take<std::uint64_t>("window", Upstream::can.owns_pool ? 0 : 1)),
        copy_(metadata.take<buffer>("handle", 1)) {}

  template <class Backend>
  static void reserve(std::uint64_t size) requires requires {
    Upstream::template reserve<Backend>(size);
  }
  { Upstream::template reserve<Backend>(size); }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    upstream_.initialise(lane, lanes);
    for (std::uint64_t i = lane; i < std::uint64_t{classes::count} * width(); i += lanes)
      fifo(fifos_ + i).initialise(0, 1);
    if (lane == 0) *copy_ = *this;
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n == 0 || n > pool_size_) return nullptr;
    if (classes::fits(n + header_size))
      for (std::uint32_t i = 0; i <= extra_attempts(classes::class_of(n + header_size)); ++i)
        if (void* const p = dequeue_user(classes::class_of(n + header_size), random_fifo()))
          return p;
    if (void* const p = allocate(*copy_, n)) return p;
    return allocate_after_failure(*copy_, n);
  }

  QUARRY_DEVICE void free(void* p) const {
    if (p == nullptr) return;
    std::byte* const block = static_cast<std::byte*>(p) - header_size;
    const std::uint32_t size_class = class_word(block).load(simt::relaxed);
    if (size_class != uncached)
      for (std::uint32_t i = 0; i <= extra_attempts(size_class); ++i)
        if (try_enqueue(block, size_class)) return;
    upstream_.free(block);
  }

  /// Frees all cached blocks to the upstream. One lane suffices.
  QUARRY_DEVICE void drain() const { free_cached(*copy_); }

  std::string check_invariants() const;
  heap_statistics statistics() const;

  /// Returns the bytes in all FIFOs, as requested from the upstream. Requires quiescence.
  std::uint64_t cached_bytes() const {
    std::uint64_t sum = 0;
    for (std::uint32_t c = 0; c < classes::count; ++c)
      for (std::uint32_t i = 0; i <= last_fifo(c); ++i)
        sum += std::uint64_t{fifo_of(c, i).size()} * classes::size_of(c);
    return sum;
  }

 private:
  using storage = typename fifo::storage;
  static constexpr std::uint32_t stride = 4;  // places the words in different sectors
  static constexpr std::uint32_t uncached = ~std::uint32_t{0};
  static constexpr std::uint64_t half_window = std::uint64_t{1} << 35;

  /// The number of FIFOs, minus 1, of a class of 64-byte blocks that caches 1/64 of the pool. The
  /// number is a power of two.
  static constexpr std::uint32_t fifo_mask_for(std::uint64_t pool) {
    const std::uint64_t fifos = pool / 64 / (fifo::capacity * 64);
    return fifos == 0 ? 0 : (1u << std::min(log2_floor(fifos), 30u)) - 1;
  }
  /// The index of the last FIFO of a class; a mask of ones. The block size doubles every four
  /// classes, so the number of FIFOs is halved every four classes.
  QUARRY_DEVICE static constexpr std::uint32_t last_fifo(std::uint32_t size_class,
                                                         std::uint32_t max_fifo_mask) {
    return (Fifos == 0 ? max_fifo_mask >> size_class / 4 : max_fifos - 1) & (max_fifos - 1);
  }
  QUARRY_DEVICE std::uint32_t last_fifo(std::uint32_t size_class) const {
    return last_fifo(size_class, max_fifo_mask_);
  }
  /// The number of FIFOs that a call tries after the first one.
  QUARRY_DEVICE std::uint32_t extra_attempts(std::uint32_t size_class) const {
    return last_fifo(size_class) < 7 ? last_fifo(size_class) : 7;
  }
  /// The distance between the FIFOs of consecutive classes.
  QUARRY_DEVICE std::uint32_t width() const { return last_fifo(0) + 1; }
  /// Returns FIFO `number`, modulo the number of FIFOs of the class.
  QUARRY_DEVICE fifo fifo_of(std::uint32_t size_class, std::uint32_t number) const {
    return fifo(fifos_ + (size_class * width() + (number & last_fifo(size_class))));
  }
  QUARRY_DEVICE static std::uint32_t random_fifo() {
    return simt::scramble(simt::thread_id() ^ simt::block_id() << 10 ^ simt::clock());
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint32_t> class_word(std::byte* block) {
    return simt::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(block + 8));
  }

  /// Sets `start` to the start of the window. Returns false if no block was cached yet.
  QUARRY_DEVICE bool window(std::uint64_t& start) const {
    if constexpr (Upstream::can.owns_pool) {
      start = reinterpret_cast<std::uint64_t>(pool_);
      return true;
    } else {
      start = simt::atomic_ref<std::uint64_t>(*window_).load(simt::relaxed);
      return start != 0;
    }
  }
  /// Returns the start of the window; the first block determines it.
  QUARRY_DEVICE std::uint64_t window_around(std::byte* block) const {
    std::uint64_t start = 0;
    if (window(start)) return start;
    std::uint64_t mine = reinterpret_cast<std::uint64_t>(block) - half_window;
    if (mine == 0) mine = 16;  // 0 means that no window exists
    const simt::atomic_ref<std::uint64_t> word(*window_);
    return word.compare_exchange(start, mine, simt::relaxed) ? mine : start;
  }

  /// Allocates a block from the upstream and writes its header.
  QUARRY_DEVICE void* allocate_upstream(std::uint64_t size, std::uint32_t size_class) const {
    auto* const block = static_cast<std::byte*>(upstream_.malloc(size));
    if (block == nullptr) return nullptr;
    class_word(block).store(size_class, simt::relaxed);
    return block + header_size;
  }
  /// Returns a block of a FIFO; nullptr if the FIFO is empty.
  QUARRY_DEVICE std::byte* dequeue_block(std::uint32_t size_class, std::uint32_t number) const {
    std::uint64_t start = 0;
    std::uint32_t offset = 0;
    if (!window(start) || !fifo_of(size_class, number).dequeue(offset)) return nullptr;
    return reinterpret_cast<std::byte*>(start + std::uint64_t{offset} * 16);
  }
  QUARRY_DEVICE void* dequeue_user(std::uint32_t size_class, std::uint32_t number) const {
    std::byte* const block = dequeue_block(size_class, number);
    return block == nullptr ? nullptr : block + header_size;
  }

  /// Enqueues a block in a random FIFO of its class. Returns false if the FIFO is full or the block
  /// lies outside the window.
  QUARRY_DEVICE bool try_enqueue(std::byte* block, std::uint32_t size_class) const {
    const std::uint64_t offset =
        (reinterpret_cast<std::uint64_t>(block) - window_around(block)) / 16;
    return offset >> 32 == 0 &&
           fifo_of(size_class, random_fifo()).enqueue(static_cast<std::uint32_t>(offset));
  }

  // Slow paths. Their argument is the copy of the handle in the metadata: passing the kernel's
  // handle by reference would force it to the stack, and by value it takes many registers.
  QUARRY_DEVICE_NOINLINE static void* allocate(const buffer& self, std::uint64_t n);
  QUARRY_DEVICE_NOINLINE static void* allocate_after_failure(const buffer& self, std::uint64_t n);
  QUARRY_DEVICE static void free_cached(const buffer& self);

  Upstream upstream_;
  std::byte* pool_;
  std::uint64_t pool_size_;
  std::uint32_t max_fifo_mask_;
  storage* fifos_;
  std::uint64_t* allocated_classes_;
  std::uint64_t* window_;
  buffer* copy_;
};

// ---- slow paths --------------------------------------------------------------------------------

/// Allocates a block from the upstream.
template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
QUARRY_DEVICE void* buffer<Upstream, Fifos, Largest, Blocks>::allocate(const buffer& self,
                                                                       std::uint64_t n) {
  if (!classes::fits(n + header_size)) return self.allocate_upstream(n + header_size, uncached);
  const std::uint32_t size_class = classes::class_of(n + header_size);
  const simt::atomic_ref<std::uint64_t> allocated_classes(
      self.allocated_classes_[(random_fifo() & self.last_fifo(0)) * stride]);
  const std::uint64_t bit = std::uint64_t{1} << size_class;
  if ((allocated_classes.load(simt::relaxed) & bit) == 0)
    allocated_classes.bit_or(bit, simt::relaxed);
  return self.allocate_upstream(classes::size_of(size_class), size_class);
}

/// Allocates a block after the upstream has failed.
template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
QUARRY_DEVICE void* buffer<Upstream, Fifos, Largest, Blocks>::allocate_after_failure(
    const buffer& self, std::uint64_t n) {
  if (classes::fits(n + header_size)) {
    const std::uint32_t size_class = classes::class_of(n + header_size);
    for (std::uint32_t i = 0; i <= self.last_fifo(size_class); ++i)
      if (void* const p = self.dequeue_user(size_class, i)) return p;
  }
  free_cached(self);
  return self.allocate_upstream(n + header_size, uncached);
}

template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
QUARRY_DEVICE void buffer<Upstream, Fifos, Largest, Blocks>::free_cached(const buffer& self) {
  std::uint64_t allocated_classes = 0;
  for (std::uint32_t i = 0; i < self.width(); ++i)
    allocated_classes |=
        simt::atomic_ref<std::uint64_t>(self.allocated_classes_[i * stride]).load(simt::relaxed);
  for (std::uint32_t c = 0; c < classes::count; ++c) {
    if ((allocated_classes >> c & 1) == 0) continue;
    for (std::uint32_t left = fifo::capacity, i = 0; i <= self.last_fifo(c);) {
      std::byte* const block = left == 0 ? nullptr : self.dequeue_block(c, i);
      if (block == nullptr)
        left = fifo::capacity, ++i;
      else
        --left, self.upstream_.free(block);
    }
  }
}

// ---- inspection, which requires quiescence -----------------------------------------------------

template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
std::string buffer<Upstream, Fifos, Largest, Blocks>::check_invariants() const {
  if (std::string problem = upstream_.check_invariants(); !problem.empty()) return problem;
  std::uint64_t allocated_classes = 0;
  for (std::uint32_t i = 0; i < width(); ++i)
    allocated_classes |= allocated_classes_[std::size_t{i} * stride];
  struct piece {
    std::uint64_t offset, size;
  };
  std::vector<piece> pieces;
  for (std::uint32_t c = 0; c < classes::count; ++c) {
    for (std::uint32_t i = 0; i <= last_fifo(c); ++i) {
      const fifo f = fifo_of(c, i);
      std::string where = "the FIFO " + std::to_string(i) + " of class " + std::to_string(c);
      if (const std::string problem = f.check_invariants(); !problem.empty())
        return where.append(": ").append(problem);
      if (f.size() != 0 && (allocated_classes >> c & 1) == 0)
        return where + " holds a block, but no block of the class was allocated";
      f.visit([&](std::uint32_t offset) {
        pieces.push_back({std::uint64_t{offset} * 16, classes::size_of(c)});
      });
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::uint64_t end = pieces[i].offset + pieces[i].size;
    if (i + 1 < pieces.size() && end > pieces[i + 1].offset)
      return "two buffered blocks overlap, at bytes " + std::to_string(pieces[i].offset) + " and " +
             std::to_string(pieces[i + 1].offset) + " of the window";
    if (Upstream::can.owns_pool && end > pool_size_)
      return "a buffered block at byte " + std::to_string(pieces[i].offset) +
             " ends outside the pool";
  }
  return {};
}

/// Cached blocks count as free. If the upstream has rounded their sizes up, live_bytes is slightly
/// too high, but it is 0 if no block is live.
template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
heap_statistics buffer<Upstream, Fifos, Largest, Blocks>::statistics() const {
  heap_statistics s = upstream_.statistics();
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < classes::count * width(); ++i) blocks += fifo(fifos_ + i).size();
  std::uint64_t freed = cached_bytes();
  if (s.live_blocks) *s.live_blocks -= blocks;
  if (s.live_bytes) {
    if (freed > *s.live_bytes || s.live_blocks == 0u) freed = *s.live_bytes;
    *s.live_bytes -= freed;
  }
  if (s.free_bytes) *s.free_bytes += freed;
  if (blocks != 0) s.largest_free.reset();  // unknown: drain() may merge blocks
  if (s.largest_free) *s.largest_free -= std::min<std::uint64_t>(*s.largest_free, header_size);
  return s;
}

}  // namespace quarry
