// SPDX-License-Identifier: Apache-2.0
#pragma once
/// buffer: keeps freed blocks for the next request of their size. XMalloc's second stage (Huang et
/// al. 2013, 5.2), over any allocator that frees.
///
///   class     32     48     64     80  …      bytes, a block's header among them
///   FIFOs    ||||   ||||   ||||   ||||        of each class
///   block    | - | class | user bytes …… |    as the upstream gave it; the header is 16 bytes
///
/// malloc: a hash of thread, block and clock chooses one FIFO of the class. If that is empty, the hash
/// chooses another, seven times at most; then the upstream is asked. free: the same from the other side. Several FIFOs
/// keep lanes from contending for one head and one tail. Requests above the largest class pass
/// through. The default, 40 KiB, holds what coalesce makes of 32 requests.
///
/// How many blocks. The upstream is slow, or nobody would buffer: a warp that has to ask it waits as long
/// as hundreds that need not. So a class should hold a block for every warp that may be under way,
/// some 8,000 on a large GPU. The paper has 256 blocks a class in 1 to 64 FIFOs; `Fifos` says how many
/// exactly. Fifos = 0 leaves it to the size of the pool: FIFOs of 64 blocks, as many as make 1/64 of
/// the pool, 256 at most and 1 at least. In a pool of 1 GiB that is room for 16,384 blocks of up to
/// 1280 bytes, and for 512 of 40 KiB.
/// Blocks lie in other FIFOs than those that happen to be asked; eight tries make up for it. So once each
/// warp has had a block, hardly any has to ask upstream (tests/layer/buffer_resident_test.cpp counts).
///
/// Memory withheld: at most `most_withheld` bytes. By default that is less than half of the pool (or all
/// of a small one: 64 blocks of each class are 15 MiB), and so much only if every class was once in
/// full use. When the upstream refuses a request, that must not be for what lies in FIFOs:
///   1. another FIFO of the class may have a block: it is taken;
///   2. else all FIFOs are emptied into the upstream, which can then join the pieces, and it is
///      asked again, for what was wanted and not for the class.
/// A block of a larger class is not handed out: it would be lost to the requests that need it.
/// `drain` does the second alone. What is handed out while other blocks lie in FIFOs is placed
/// around them. So over a pool that can not use every gap, the memory of freed blocks comes back
/// in full only after a drain: a pool of circular, filled with 1000-byte blocks right after small ones
/// were freed, holds about a tenth fewer of them than when new.
///
/// A FIFO holds 32-bit values: a block's distance from a reference, in units of 16 bytes; that makes
/// a window of 64 GiB. Where the upstream owns its pool the window starts there. Else (CUDA's heap
/// may be anywhere) the first block to be freed is the middle of it. Blocks outside the window are
/// not buffered.
///
/// Which FIFOs are worth emptying: a class's only if a block of that class was ever made. Who asks the
/// upstream for the first one sets a bit in `made`. Bits are never cleared, so it costs one load on
/// a path that calls the upstream anyway, and free need not say anything. There are several words of
/// `made`, lest all lanes read one.
///
/// Invariant (quiescent): a block in a FIFO of class c carries c in its header; it is in no other
/// FIFO and not handed out.
/// Ordering: enqueue releases and dequeue acquires, so that the old owner's use of a block is past
/// when the new one's starts. A header is written before its block is first handed out, and stays.
/// Bound: the FIFOs are lock-free. A call asks the upstream at most twice; each FIFO is emptied of at
/// most its capacity. While another lane carries the last free block from one place to the
/// other, a call may be refused.

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

/// Fifos, BlocksPerClass: of each class exactly; Fifos = 0: at most, as the pool allows.
template <freeing_allocator Upstream, std::uint32_t Fifos = 0, std::uint32_t Largest = 40960,
          std::uint32_t BlocksPerClass = (Fifos == 0 ? 1u << 14 : 1u << 8)>
class buffer {
  static constexpr std::uint32_t header_size = 16;
  static constexpr std::uint32_t most_fifos = Fifos == 0 ? 256 : Fifos;
  static_assert(is_power_of_two(most_fifos) && most_fifos <= 1024, "1, 2, 4 … FIFOs a class");
  static_assert(is_power_of_two(BlocksPerClass) && BlocksPerClass >= most_fifos);

 public:
  using classes = size_classes<32, Largest>;  // of blocks with their header
  using fifo = bounded_fifo<BlocksPerClass / most_fifos>;
  static_assert(classes::count <= 64, "a class is a bit of a word");

  static constexpr abilities can = [] {
    abilities c = Upstream::can;
    if (c.max_size != ~std::uint64_t{0}) c.max_size -= header_size;
    c.max_alignment = block_alignment;
    return c;
  }();

  /// The most that all FIFOs together keep from the upstream, as bytes asked of it.
  static constexpr std::uint64_t most_withheld(std::uint64_t pool) {
    std::uint64_t sum = 0;
    for (std::uint32_t c = 0; c < classes::count; ++c)
      sum += std::uint64_t{classes::sizes[c]} * (last_fifo(c, allowance(pool)) + 1);
    return sum * fifo::capacity;
  }

  buffer() = default;
  buffer(memory_range pool, carve& metadata)
      : upstream_(pool, metadata),
        pool_(pool.begin),
        pool_size_(pool.size),
        allowance_(allowance(pool.size)),
        fifos_(metadata.take<storage>("fifos", std::uint64_t{classes::count} * width())),
        made_(metadata.take<std::uint64_t>("made", std::uint64_t{width()} * stride)),
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
      for (std::uint32_t i = 0; i <= others(classes::class_of(n + header_size)); ++i)
        if (void* const p = take(classes::class_of(n + header_size), choose())) return p;
    if (void* const p = make(*copy_, n)) return p;
    return make_after_all(*copy_, n);
  }

  QUARRY_DEVICE void free(void* p) const {
    if (p == nullptr) return;
    std::byte* const block = static_cast<std::byte*>(p) - header_size;
    const std::uint32_t size_class = class_word(block).load(simt::relaxed);
    if (size_class != passes_through)
      for (std::uint32_t i = 0; i <= others(size_class); ++i)
        if (keep(block, size_class)) return;
    upstream_.free(block);
  }

  /// Gives everything that is buffered back to the upstream. One lane is enough.
  QUARRY_DEVICE void drain() const { empty(*copy_); }

  std::string check_invariants() const;
  heap_statistics statistics() const;

  /// Bytes that lie in FIFOs, as they were asked of the upstream. Between kernels.
  std::uint64_t withheld() const {
    std::uint64_t sum = 0;
    for (std::uint32_t c = 0; c < classes::count; ++c)
      for (std::uint32_t i = 0; i <= last_fifo(c); ++i)
        sum += std::uint64_t{fifo_of(c, i).size()} * classes::size_of(c);
    return sum;
  }

 private:
  using storage = typename fifo::storage;
  static constexpr std::uint32_t stride = 4;  // words of `made` lie in different sectors
  static constexpr std::uint32_t passes_through = ~std::uint32_t{0};
  static constexpr std::uint64_t half_window = std::uint64_t{1} << 35;

  /// What a class may keep, 1/64 of the pool, in FIFOs of 64-byte blocks: 2^k - 1 for 2^k of them.
  static constexpr std::uint32_t allowance(std::uint64_t pool) {
    const std::uint64_t fifos = pool / 64 / (fifo::capacity * 64);
    return fifos == 0 ? 0 : (1u << std::min(log2_floor(fifos), 30u)) - 1;
  }
  /// The number of a class's last FIFO, all bits set. Each four classes double in size, 32 … 80 come first.
  QUARRY_DEVICE static constexpr std::uint32_t last_fifo(std::uint32_t size_class,
                                                         std::uint32_t allowance) {
    return (Fifos == 0 ? allowance >> size_class / 4 : most_fifos - 1) & (most_fifos - 1);
  }
  QUARRY_DEVICE std::uint32_t last_fifo(std::uint32_t size_class) const {
    return last_fifo(size_class, allowance_);
  }
  /// How many others are tried after the first one.
  QUARRY_DEVICE std::uint32_t others(std::uint32_t size_class) const {
    return last_fifo(size_class) < 7 ? last_fifo(size_class) : 7;
  }
  /// FIFOs of a class lie so far from those of the next.
  QUARRY_DEVICE std::uint32_t width() const { return last_fifo(0) + 1; }
  /// Any number will do: it is taken modulo the class's FIFOs.
  QUARRY_DEVICE fifo fifo_of(std::uint32_t size_class, std::uint32_t number) const {
    return fifo(fifos_ + (size_class * width() + (number & last_fifo(size_class))));
  }
  QUARRY_DEVICE static std::uint32_t choose() {
    return simt::scramble(simt::thread_id() ^ simt::block_id() << 10 ^ simt::clock());
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint32_t> class_word(std::byte* block) {
    return simt::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(block + 8));
  }

  /// Where the window starts; false: nothing was buffered yet.
  QUARRY_DEVICE bool window(std::uint64_t& start) const {
    if constexpr (Upstream::can.owns_pool) {
      start = reinterpret_cast<std::uint64_t>(pool_);
      return true;
    } else {
      start = simt::atomic_ref<std::uint64_t>(*window_).load(simt::relaxed);
      return start != 0;
    }
  }
  /// The same, for a block to buffer: the first one makes the window.
  QUARRY_DEVICE std::uint64_t window_around(std::byte* block) const {
    std::uint64_t start = 0;
    if (window(start)) return start;
    std::uint64_t mine = reinterpret_cast<std::uint64_t>(block) - half_window;
    if (mine == 0) mine = 16;  // 0 means that there is none
    const simt::atomic_ref<std::uint64_t> word(*window_);
    return word.compare_exchange(start, mine, simt::relaxed) ? mine : start;
  }

  /// Asks the upstream, and notes what kind of block it is.
  QUARRY_DEVICE void* ask(std::uint64_t size, std::uint32_t size_class) const {
    auto* const block = static_cast<std::byte*>(upstream_.malloc(size));
    if (block == nullptr) return nullptr;
    class_word(block).store(size_class, simt::relaxed);
    return block + header_size;
  }
  /// A block out of a FIFO; nullptr: it was empty.
  QUARRY_DEVICE std::byte* take_block(std::uint32_t size_class, std::uint32_t number) const {
    std::uint64_t start = 0;
    std::uint32_t place = 0;
    if (!window(start) || !fifo_of(size_class, number).dequeue(place)) return nullptr;
    return reinterpret_cast<std::byte*>(start + std::uint64_t{place} * 16);
  }
  QUARRY_DEVICE void* take(std::uint32_t size_class, std::uint32_t number) const {
    std::byte* const block = take_block(size_class, number);
    return block == nullptr ? nullptr : block + header_size;
  }

  /// Puts a block into some FIFO of its class; false: that was full, or the block is outside the window.
  QUARRY_DEVICE bool keep(std::byte* block, std::uint32_t size_class) const {
    const std::uint64_t place =
        (reinterpret_cast<std::uint64_t>(block) - window_around(block)) / 16;
    return place >> 32 == 0 &&
           fifo_of(size_class, choose()).enqueue(static_cast<std::uint32_t>(place));
  }

  // Off the fast path. They get the copy of the handle that is in the metadata: the address of a
  // kernel's own would put it on the stack, its value in many registers.
  QUARRY_DEVICE QUARRY_NOINLINE static void* make(const buffer& self, std::uint64_t n);
  QUARRY_DEVICE QUARRY_NOINLINE static void* make_after_all(const buffer& self, std::uint64_t n);
  QUARRY_DEVICE static void empty(const buffer& self);

  Upstream upstream_;
  std::byte* pool_;
  std::uint64_t pool_size_;
  std::uint32_t allowance_;
  storage* fifos_;
  std::uint64_t* made_;
  std::uint64_t* window_;
  buffer* copy_;
};

// ---- slow paths --------------------------------------------------------------------------------------

/// A block from the upstream.
template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
QUARRY_DEVICE void* buffer<Upstream, Fifos, Largest, Blocks>::make(const buffer& self,
                                                                   std::uint64_t n) {
  if (!classes::fits(n + header_size)) return self.ask(n + header_size, passes_through);
  const std::uint32_t size_class = classes::class_of(n + header_size);
  const simt::atomic_ref<std::uint64_t> made(self.made_[(choose() & self.last_fifo(0)) * stride]);
  const std::uint64_t bit = std::uint64_t{1} << size_class;
  if ((made.load(simt::relaxed) & bit) == 0) made.bit_or(bit, simt::relaxed);
  return self.ask(classes::size_of(size_class), size_class);
}

/// The same when the upstream has refused.
template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
QUARRY_DEVICE void* buffer<Upstream, Fifos, Largest, Blocks>::make_after_all(const buffer& self,
                                                                             std::uint64_t n) {
  if (classes::fits(n + header_size)) {
    const std::uint32_t size_class = classes::class_of(n + header_size);
    for (std::uint32_t i = 0; i <= self.last_fifo(size_class); ++i)
      if (void* const p = self.take(size_class, i)) return p;
  }
  empty(self);
  return self.ask(n + header_size, passes_through);
}

template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
QUARRY_DEVICE void buffer<Upstream, Fifos, Largest, Blocks>::empty(const buffer& self) {
  std::uint64_t made = 0;
  for (std::uint32_t i = 0; i < self.width(); ++i)
    made |= simt::atomic_ref<std::uint64_t>(self.made_[i * stride]).load(simt::relaxed);
  for (std::uint32_t c = 0; c < classes::count; ++c) {
    if ((made >> c & 1) == 0) continue;
    for (std::uint32_t left = fifo::capacity, i = 0; i <= self.last_fifo(c);) {
      std::byte* const block = left == 0 ? nullptr : self.take_block(c, i);
      if (block == nullptr)
        left = fifo::capacity, ++i;
      else
        --left, self.upstream_.free(block);
    }
  }
}

// ---- between kernels ---------------------------------------------------------------------------------

template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
std::string buffer<Upstream, Fifos, Largest, Blocks>::check_invariants() const {
  if (std::string problem = upstream_.check_invariants(); !problem.empty()) return problem;
  std::uint64_t made = 0;
  for (std::uint32_t i = 0; i < width(); ++i) made |= made_[i * stride];
  struct piece {
    std::uint64_t place, size;
  };
  std::vector<piece> pieces;
  for (std::uint32_t c = 0; c < classes::count; ++c) {
    for (std::uint32_t i = 0; i <= last_fifo(c); ++i) {
      const fifo f = fifo_of(c, i);
      const std::string where = "the FIFO " + std::to_string(i) + " of class " + std::to_string(c);
      if (const std::string problem = f.check_invariants(); !problem.empty())
        return where + ": " + problem;
      if (f.size() != 0 && (made >> c & 1) == 0)
        return where + " holds a block, but none of that class was made";
      f.visit([&](std::uint32_t place) {
        pieces.push_back({std::uint64_t{place} * 16, classes::size_of(c)});
      });
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](auto& a, auto& b) { return a.place < b.place; });
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::uint64_t end = pieces[i].place + pieces[i].size;
    if (i + 1 < pieces.size() && end > pieces[i + 1].place)
      return "two buffered blocks overlap, at bytes " + std::to_string(pieces[i].place) + " and " +
             std::to_string(pieces[i + 1].place) + " of the window";
    if (Upstream::can.owns_pool && end > pool_size_)
      return "a buffered block at byte " + std::to_string(pieces[i].place) +
             " ends outside the pool";
  }
  return {};
}

/// What is buffered counts as free. The upstream may have rounded those blocks up: live bytes are then
/// a little too many, but none when no block is live.
template <freeing_allocator Upstream, std::uint32_t Fifos, std::uint32_t Largest,
          std::uint32_t Blocks>
heap_statistics buffer<Upstream, Fifos, Largest, Blocks>::statistics() const {
  heap_statistics s = upstream_.statistics();
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < classes::count * width(); ++i) blocks += fifo(fifos_ + i).size();
  std::uint64_t freed = withheld();
  if (s.live_blocks) *s.live_blocks -= blocks;
  if (s.live_bytes) {
    if (freed > *s.live_bytes || s.live_blocks == 0u) freed = *s.live_bytes;
    *s.live_bytes -= freed;
  }
  if (s.free_bytes) *s.free_bytes += freed;
  if (blocks != 0) s.largest_free.reset();  // what emptying the FIFOs would join, nobody knows
  if (s.largest_free) *s.largest_free -= std::min<std::uint64_t>(*s.largest_free, header_size);
  return s;
}

}  // namespace quarry
