// SPDX-License-Identifier: Apache-2.0
#pragma once
/// heap: the memory that kernels allocate from. The heap lives on the host; kernels get a heap_ref.
///
///   quarry::heap<> heap(1_GiB);                              // default allocator, default backend
///   quarry::heap<quarry::bump, quarry::cpu> h(64_MiB);
///   quarry::heap<quarry::growing_bump> g(64_MiB, {.max = 8_GiB});
///   kernel<<<blocks, threads, 0, stream>>>(heap.ref());
///   heap.check(stream);                                      // throws if an allocation failed
///
///   pool       | blocks .................................. | uncommitted addresses ... |
///   metadata   | header | metadata of the allocator ...... |     not adjacent to the pool
///
/// The pool has the requested size; metadata comes on top (metadata_bytes). If the caller provides
/// the memory, it holds both, metadata at its end.
///
/// Streams. Host functions take a stream as their last argument (simt/stream.hpp).
/// - The constructors and reset() enqueue their work on the stream and return. Kernels that the
///   program launches on the same stream afterwards may use the heap. Kernels on other streams must
///   be ordered behind this work with an event. A heap with uncommitted addresses waits for the
///   stream.
/// - Functions with a result (allocate, statistics, check, copy_from, grow, ...) wait for the
///   stream. Kernels on other streams that use the heap must have ended or be ordered before the
///   call.
/// - Without a stream, every function waits until the whole device is idle.
/// - The destructor and assignment release memory. No kernel may use the heap then.
///
/// Thread safety: kernels use a heap concurrently, also from several streams. Host functions other
/// than ref() require that no other host function of the same heap runs. A heap that was moved from
/// has no memory; its functions throw error until a heap is assigned to it.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>
#include <quarry/heap/detail/growing_memory.hpp>
#include <quarry/heap/failures.hpp>
#include <quarry/heap/growth.hpp>
#include <quarry/heap/memory_source.hpp>
#include <quarry/heap/ref.hpp>
#include <quarry/simt/array.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>
#include <quarry/simt/stream.hpp>

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

/// Allocators that cache free blocks; drain() returns them to the upstream.
template <class A>
concept draining_allocator = allocator<A> && requires(const A a) {
  a.drain();
};

/// Allocators that check the contents of blocks; inspect(lane, lanes) does the part of one lane.
template <class A>
concept inspecting_allocator = allocator<A> && requires(const A a, std::uint64_t lane) {
  a.inspect(lane, lane);
};

/// Allocators that can list the pieces of their pool (pool_piece).
template <class A>
concept mapping_allocator = allocator<A> && requires(const A a) {
  a.visit_pieces([](const pool_piece&) {});
};

/// An invariant of the metadata is violated: memory was overwritten, or the allocator has a defect.
class heap_corrupted : public error {
 public:
  using error::error;
};
/// Allocations of kernels failed.
class allocation_failed : public error {
 public:
  using error::error;
};
/// Blocks are live that should have been freed.
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

  using stream_type = stream_ref<Backend>;

  /// Allocates a pool of this size on the backend. Throws out_of_memory.
  explicit heap(bytes pool, stream_type stream = {});

  /// As above; the pool can grow to g.max between kernels. Sizes are rounded up to pages. Throws
  /// error if a field of g is out of range.
  heap(bytes pool, const growth& g,
       stream_type stream = {}) requires resizable_allocator<Allocator>;

  /// Uses memory of the caller, which must be accessible to the backend and outlive the heap.
  /// Memory of cudaMallocAsync is accessible on the stream that it was allocated on.
  heap(void* memory, bytes size, stream_type stream = {});
  explicit heap(std::span<std::byte> memory, stream_type stream = {})
      : heap(memory.data(), bytes(memory.size()), stream) {}
  /// Allocates `size` bytes from a memory source (memory_source.hpp) and returns them at its end.
  template <memory_source Source>
  heap(Source& source, bytes size, stream_type stream = {})
      : heap(detail::allocate_shared(source, size.value(), carve::alignment), size, stream) {}

  heap(heap&& other) noexcept { swap(other); }
  /// Releases the memory that this heap had; `other` has none afterwards.
  heap& operator=(heap&& other) noexcept {
    heap taken(std::move(other));
    swap(taken);
    return *this;
  }
  /// Live blocks end with the pool. An allocator without a pool (system_heap) returns the free
  /// blocks that its layers cache to the system; live blocks stay.
  ~heap() {
    if constexpr (!can.owns_pool && draining_allocator<Allocator>)
      if (has_memory()) try_drain();
  }

  /// Returns what kernels get. It is valid until the heap ends, also when the heap moves or grows.
  ref_type ref() const {
    require_memory("ref");
    return ref_type(allocator_, log());
  }

  // ---- blocks, from the host --------------------------------------------------------------------

  /// Allocates n bytes as heap_ref::malloc does; nullptr if the allocation failed or n is 0. On a
  /// GPU each call launches a kernel: use it for a few blocks. The host can not access the block
  /// there.
  void* allocate(std::size_t n, stream_type stream = {}) const;
  /// Requires: p from allocate() or from a kernel's malloc on this heap, not freed since, or
  /// nullptr.
  void deallocate(void* p, stream_type stream = {}) const requires freeing_allocator<Allocator>;

  /// Constructs a T on the host and copies its bytes into a new block. Returns nullptr if the
  /// allocation failed. Waits for the device: all arguments are the constructor's.
  template <class T, class... Arguments>
  T* create(Arguments&&... arguments) const {
    static_assert(std::is_trivially_copyable_v<T>,
                  "heap::create copies the bytes of a T: create other types in a kernel");
    static_assert(alignof(T) <= block_alignment, "blocks are aligned to 16 bytes");
    const T value(std::forward<Arguments>(arguments)...);
    void* const block = allocate(sizeof(T));
    if (block != nullptr) copy_in(block, &value, sizeof(T), {});
    return static_cast<T*>(block);
  }
  /// Requires: p from create(), not destroyed since, or nullptr.
  template <class T>
  void destroy(T* p, stream_type stream = {}) const requires freeing_allocator<Allocator> {
    static_assert(std::is_trivially_destructible_v<T>,
                  "heap::destroy runs no destructor: destroy other types in a kernel");
    deallocate(p, stream);
  }

  /// Copies between host memory and blocks. cudaMemcpy is equivalent for allocators with a
  /// pool.
  template <class T>
  void copy_to(void* block, std::span<const T> from, stream_type stream = {}) const {
    copy_in(block, from.data(), from.size_bytes(), stream);
  }
  template <class T>
  void copy_from(std::span<T> to, const void* block, stream_type stream = {}) const {
    copy_out(to.data(), block, to.size_bytes(), stream);
  }

  /// Frees all blocks at once. The heap keeps its size.
  void reset(stream_type stream = {}) requires(can.frees_all) {
    require_memory("reset");
    simt::memory<Backend>::zero(metadata_, metadata_size_, stream);
    adapted_failures_ = 0;
    initialise(stream);
  }

  /// Layers return the free blocks that they cache to their upstream.
  void drain(stream_type stream = {}) const requires draining_allocator<Allocator>;

  // ---- size -------------------------------------------------------------------------------------

  std::uint64_t pool_bytes() const { return pool_size_; }
  std::uint64_t max_pool_bytes() const { return pool_end_; }
  std::uint64_t metadata_bytes() const { return metadata_size_; }
  memory_range pool() const { return {pool_, can.owns_pool ? pool_size_ : 0}; }

  /// Makes the pool at least this large. Near the maximum the pool may be smaller by what is too
  /// little for the allocator to use. Throws error above the maximum and out_of_memory if the
  /// backend has no more memory; the heap is then unchanged.
  void grow(bytes pool, stream_type stream = {}) requires resizable_allocator<Allocator>;
  /// Returns memory behind the last block to the system, in whole pages, down to the size that the
  /// heap was constructed with. Returns the number of bytes. Waits for the whole device.
  std::uint64_t trim(stream_type stream = {}) requires resizable_allocator<Allocator>;
  /// Grows if the policy (growth.hpp) says so, and returns whether it did. Throws what grow()
  /// throws.
  bool adapt(stream_type stream = {}) requires resizable_allocator<Allocator>;

  // ---- statistics and checks --------------------------------------------------------------------

  heap_statistics statistics(stream_type stream = {}) const;

  /// Returns the failed allocations since the heap was constructed or reset, or clear_failures()
  /// was called.
  allocation_failures failures(stream_type stream = {}) const {
    require_memory("failures");
    failure_log copy;
    read_back(&copy, log(), sizeof copy, stream);
    return copy.counts();
  }
  void clear_failures(stream_type stream = {}) {
    require_memory("clear_failures");
    simt::memory<Backend>::zero(log(), sizeof(failure_log), stream);
    if (!stream.names_stream()) stream.synchronize();
    adapted_failures_ = 0;
  }

  /// Checks the invariants of the metadata. Returns an empty string, or the first that is violated.
  std::string check_invariants(stream_type stream = {}) const {
    inspect(stream);
    return on_host([](const Allocator& a) { return a.check_invariants(); }, stream);
  }
  /// Throws heap_corrupted if an invariant is violated, and allocation_failed if an allocation
  /// failed.
  void check(stream_type stream = {}) const;
  /// As check(); throws blocks_leaked if blocks are live, as far as the allocator knows.
  void check_empty(stream_type stream = {}) const;

  /// Lets a layer that watches blocks (checked) look through all of them.
  void inspect(stream_type stream = {}) const;

  /// Returns read(a), where `a` is the allocator over a copy of its metadata that the host can
  /// read: heap.on_host([](const auto& a) { return a.statistics(); }). On a GPU the host can not
  /// read blocks.
  template <class Read>
  auto on_host(Read&& read, [[maybe_unused]] stream_type stream = {}) const {
    require_memory("on_host");
    if constexpr (std::is_same_v<Backend, cpu>) {
      return read(allocator_);
    } else {
      std::vector<std::uint64_t> copy(metadata_size_ / 8 + carve::alignment / 8 + 1);
      const auto first = reinterpret_cast<std::uintptr_t>(copy.data());
      auto* base = reinterpret_cast<std::byte*>(align_up(first, carve::alignment));
      read_back(base, metadata_, metadata_size_, stream);
      carve parts(base + header_bytes);
      return read(Allocator(memory_range{pool_, pool_end_}, parts));
    }
  }

 private:
  /// The front of the metadata, in the memory of the backend.
  struct header_type {
    failure_log failures;
    std::uint64_t result;  // of the last kernel that a host function launched
  };
  static constexpr std::uint64_t header_bytes = carve::alignment;
  static_assert(sizeof(header_type) <= header_bytes);

  /// The owner of the memory: `pool` or `growing` with `metadata`, or `borrowed`, or none of them
  /// if the memory is the caller's. Pool and metadata are separate, so that the pool starts on a
  /// page.
  struct storage {
    simt::array<std::byte, Backend> pool{0};
    detail::growing_memory<Backend> growing;
    simt::array<std::byte, Backend> metadata{0};
    std::shared_ptr<void> borrowed;
  };

  heap(std::shared_ptr<void> memory, bytes size, stream_type stream)
      : heap(memory.get(), size, stream) {
    owner_.borrowed = std::move(memory);
  }

  static std::uint64_t metadata_for(std::uint64_t pool) {
    return header_bytes + quarry::metadata_bytes<Allocator>(pool);
  }
  static void check_size(std::uint64_t pool);
  /// How memory of the caller is divided.
  struct division {
    std::uint64_t pool = 0;
    std::uint64_t metadata = 0;
  };
  static division divide(std::uint64_t size);
  static std::uint64_t least_size();
  bool has_memory() const { return metadata_ != nullptr; }
  /// Throws error if this heap was moved from.
  void require_memory(const char* function) const;
  void start(std::byte* pool, std::byte* metadata, stream_type stream);
  void initialise(stream_type stream);
  std::uint64_t resize(std::uint64_t from, std::uint64_t to, stream_type stream) const;
  bool is_short(const heap_statistics& s) const;
  std::string describe_failures(stream_type stream) const;
  void copy_in(void* block, const void* from, std::uint64_t n, stream_type stream) const;
  void copy_out(void* to, const void* block, std::uint64_t n, stream_type stream) const;
  void check_inside(const void* block, std::uint64_t n) const;
  /// Copies from the backend to the host, behind all work that the stream orders before.
  void read_back(void* to, const void* from, std::uint64_t n, stream_type stream) const {
    if (!stream.names_stream()) stream.synchronize();
    simt::memory<Backend>::copy(to, from, n, stream);
  }
  header_type* header() const { return reinterpret_cast<header_type*>(metadata_); }
  failure_log* log() const { return &header()->failures; }

  void try_drain() const noexcept {
    try {
      drain();
    } catch (...) {  // a kernel has failed, or the backend has shut down
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
    std::swap(adapted_failures_, other.adapted_failures_);
    std::swap(growth_, other.growth_);
    std::swap(allocator_, other.allocator_);
  }

  storage owner_;
  std::byte* pool_ = nullptr;
  std::byte* metadata_ = nullptr;
  std::uint64_t pool_size_ = 0;  // bytes with memory
  std::uint64_t pool_end_ = 0;   // maximum of pool_size_; the allocator is laid out for it
  std::uint64_t metadata_size_ = 0;
  std::uint64_t first_size_ = 0;        // pool_size_ at construction
  std::uint64_t adapted_failures_ = 0;  // failed allocations that adapt() has seen
  growth growth_{};
  Allocator allocator_{};
};

}  // namespace quarry

#include <quarry/heap/detail/impl.hpp>  // IWYU pragma: export
