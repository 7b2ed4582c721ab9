// SPDX-License-Identifier: Apache-2.0
#pragma once
/// heap: owns, or borrows, the memory of a machine and serves it to kernels through an allocator.
///
///   quarry::heap<> heap(1_GiB);                          // the default allocator, the default machine
///   quarry::heap<quarry::bump, quarry::cpu> h(64_MiB);
///   quarry::heap<quarry::growing_bump> g(64_MiB, {.max = 8_GiB});
///   kernel<<<blocks, threads>>>(heap.ref());
///
///   pool       | user blocks …………………………………………… | addresses to grow into …… |
///   metadata   | refused requests | the allocator's …… |            elsewhere
///
/// The pool has the size asked for; metadata comes on top (metadata_bytes). Memory that the caller gives
/// holds both, metadata at the end. Everything here but ref() waits for the machine and must not run
/// beside a kernel that uses the heap.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>
#include <quarry/heap/growing_memory.hpp>
#include <quarry/heap/growth.hpp>
#include <quarry/heap/memory_source.hpp>
#include <quarry/heap/ref.hpp>
#include <quarry/heap/refusals.hpp>
#include <quarry/simt/array.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry {

/// Allocators that keep freed memory for later, and give it back on request.
template <class A>
concept draining_allocator = allocator<A> && requires(const A a) {
  a.drain();
};

/// Allocators that can look through user memory: the share of one lane out of some.
template <class A>
concept inspecting_allocator = allocator<A> && requires(const A a, std::uint64_t lane) {
  a.inspect(lane, lane);
};

/// Allocators that can tell what their pool is cut into (pool_piece).
template <class A>
concept mapping_allocator = allocator<A> && requires(const A a) {
  a.visit_pieces([](const pool_piece&) {});
};

/// A heap's metadata does not add up: memory was corrupted, or the allocator has a defect.
class heap_corrupted : public error {
 public:
  using error::error;
};
/// Kernels asked for memory and got none.
class requests_refused : public error {
 public:
  using error::error;
};
/// Blocks are live where none should be.
class blocks_leaked : public error {
 public:
  using error::error;
};

template <allocator Allocator = default_allocator, backend Backend = default_backend>
class heap {
 public:
  using allocator_type = Allocator;
  using backend_type = Backend;
  using ref_type = heap_ref<Allocator, Backend>;
  static constexpr abilities can = Allocator::can;

  /// Takes a pool of this size from the machine. Throws out_of_memory.
  explicit heap(bytes pool);

  /// The same, and grows up to g.max between kernels. The pool's size is rounded up to the machine's pages.
  heap(bytes pool, const growth& g) requires resizable_allocator<Allocator>;

  /// Lives in memory of the caller, which must be accessible to the machine and outlive the heap: from cudaMalloc, or
  /// from cudaMallocAsync once its stream has come to it; on the CPU any.
  heap(void* memory, bytes size);
  explicit heap(std::span<std::byte> memory) : heap(memory.data(), bytes(memory.size())) {}
  /// Lives in memory of a source (memory_source.hpp), of which it takes this much.
  template <memory_source Source>
  heap(Source& source, bytes size) : heap(borrow(source, size.value(), carve::alignment), size) {}

  heap(heap&& other) noexcept { swap(other); }
  heap& operator=(heap&& other) noexcept {
    swap(other);
    return *this;
  }
  /// Live blocks end with the pool. Where there is none, what layers keep for later goes back to the system,
  /// and live blocks stay.
  ~heap() {
    if constexpr (!can.owns_pool && draining_allocator<Allocator>)
      if (metadata_ != nullptr) try_drain();
  }

  /// What kernels get.
  ref_type ref() const { return ref_type(allocator_, book()); }

  // ---- blocks, from the host ---------------------------------------------------------------------

  /// On the GPU each is a kernel of its own: for a few blocks.
  void* malloc(std::size_t n) const;
  void free(void* p) const requires freeing_allocator<Allocator>;

  /// Between the host's memory and that of blocks. cudaMemcpy does the same, on every allocator with a pool.
  template <class T>
  void copy_to(void* block, std::span<const T> from) const {
    copy_in(block, from.data(), from.size_bytes());
  }
  template <class T>
  void copy_from(std::span<T> to, const void* block) const {
    copy_out(to.data(), block, to.size_bytes());
  }

  /// Frees everything at once: the heap is as new, but as large as it is.
  void reset() requires(can.frees_all) {
    simt::memory<Backend>::zero(metadata_, metadata_size_);
    initialise();
  }

  /// What layers keep for later goes back to where they have it from.
  void drain() const requires draining_allocator<Allocator>;

  // ---- size --------------------------------------------------------------------------------------

  std::uint64_t pool_bytes() const { return pool_size_; }
  std::uint64_t max_pool_bytes() const { return pool_end_; }
  std::uint64_t metadata_bytes() const { return metadata_size_; }
  memory_range pool() const { return {pool_, can.owns_pool ? pool_size_ : 0}; }

  /// Makes the pool at least this large (near the maximum less what is too little for the allocator to use). Throws
  /// error above the maximum, out_of_memory if the machine has no more; the heap is then as it was.
  void grow(bytes pool) requires resizable_allocator<Allocator>;
  /// Gives back memory behind the last block, as far as pages allow, down to the size that the heap was made with.
  /// Returns how much.
  std::uint64_t trim() requires resizable_allocator<Allocator>;
  /// Between two kernels: grows if the policy says so, and tells whether it did. Throws what grow throws.
  bool adapt() requires resizable_allocator<Allocator>;

  // ---- what it says about itself -----------------------------------------------------------------

  heap_statistics statistics() const;

  /// Requests that found no memory, since the heap was made or reset, or these were forgotten.
  refusal_counts refusals() const {
    refusal_book copy;
    simt::memory<Backend>::copy(&copy, book(), sizeof copy);
    return copy.counts();
  }
  void forget_refusals() {
    simt::memory<Backend>::zero(book(), sizeof(refusal_book));
    answered_ = 0;
  }

  /// Walks the metadata. Empty: all is well; else what is wrong.
  std::string check_invariants() const {
    inspect();
    return on_host([](const Allocator& a) { return a.check_invariants(); });
  }
  /// Throws heap_corrupted if the metadata is wrong, and requests_refused if kernels were short of memory.
  void check() const;
  /// The same, and throws blocks_leaked if blocks are live, as far as the allocator can tell.
  void check_empty() const;

  /// Lets a layer that watches user memory look through it.
  void inspect() const;

  /// Calls `read` with an allocator whose metadata the host can read: heap.on_host([](const auto& a) {
  /// return a.statistics(); }). The pool is the machine's all the same.
  template <class Read>
  auto on_host(Read&& read) const {
    if constexpr (std::is_same_v<Backend, cpu>) {
      return read(allocator_);
    } else {
      std::vector<std::uint64_t> copy(metadata_size_ / 8 + carve::alignment / 8 + 1);
      const auto first = reinterpret_cast<std::uintptr_t>(copy.data());
      auto* base = reinterpret_cast<std::byte*>(align_up(first, carve::alignment));
      simt::memory<Backend>::copy(base, metadata_, metadata_size_);
      carve parts(base + book_bytes);
      return read(Allocator(memory_range{pool_, pool_end_}, parts));
    }
  }

 private:
  static constexpr std::uint64_t book_bytes = carve::alignment;
  static_assert(sizeof(refusal_book) <= book_bytes);

  // Whose memory it is; of the four two or one are in use. Pool and metadata are apart, so that the pool starts on a
  // page.
  struct storage {
    simt::array<std::byte, Backend> pool{0};
    growing_memory<Backend> growing;
    simt::array<std::byte, Backend> metadata{0};
    std::shared_ptr<void> borrowed;
  };

  heap(std::shared_ptr<void> memory, bytes size) : heap(memory.get(), size) {
    owner_.borrowed = std::move(memory);
  }

  static std::uint64_t metadata_for(std::uint64_t pool) {
    return book_bytes + quarry::metadata_bytes<Allocator>(pool);
  }
  static void check_size(std::uint64_t pool);
  void start(std::byte* pool, std::byte* metadata);
  void initialise();
  std::uint64_t resize(std::uint64_t from, std::uint64_t to) const;
  bool is_short(const heap_statistics& s) const;
  std::string describe_refusals() const;
  void copy_in(void* block, const void* from, std::uint64_t n) const;
  void copy_out(void* to, const void* block, std::uint64_t n) const;
  void check_inside(const void* block, std::uint64_t n) const;
  refusal_book* book() const { return reinterpret_cast<refusal_book*>(metadata_); }

  void try_drain() const noexcept {
    try {
      drain();
    } catch (...) {  // the machine has failed, or is gone
    }
  }
  void swap(heap& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(pool_, other.pool_);
    std::swap(metadata_, other.metadata_);
    std::swap(pool_size_, other.pool_size_);
    std::swap(pool_end_, other.pool_end_);
    std::swap(metadata_size_, other.metadata_size_);
    std::swap(first_size_, other.first_size_);
    std::swap(answered_, other.answered_);
    std::swap(growth_, other.growth_);
    std::swap(allocator_, other.allocator_);
  }

  storage owner_;
  std::byte* pool_ = nullptr;
  std::byte* metadata_ = nullptr;
  std::uint64_t pool_size_ = 0;  // now
  std::uint64_t pool_end_ = 0;   // at most; the allocator is made for this
  std::uint64_t metadata_size_ = 0;
  std::uint64_t first_size_ = 0;  // that the heap was made with
  std::uint64_t answered_ = 0;    // refusals that adapt() has seen
  growth growth_{};
  Allocator allocator_{};
};

}  // namespace quarry

#include <quarry/heap/impl.hpp>  // IWYU pragma: export
