// SPDX-License-Identifier: Apache-2.0
#pragma once
/// heap: owns, or borrows, the memory of a machine and serves it to kernels through an allocator.
///
///   quarry::heap<> heap(1_GiB);                          // the default allocator, the default machine
///   quarry::heap<quarry::bump, quarry::cpu> h(64_MiB);
///   kernel<<<blocks, threads>>>(heap.ref());
///
/// The pool has the size asked for; metadata comes on top (metadata_bytes). Memory that the caller gives
/// holds both, metadata at the end. Everything here but ref() waits for the machine and must not run
/// beside a kernel that uses the heap.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/heap/heap_ref.hpp>
#include <quarry/simt/array.hpp>
#include <quarry/simt/error.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry {

/// Allocators that keep freed memory for later, and give it back on request.
template <class A>
concept draining_allocator = allocator<A> && requires(const A a) { a.drain(); };

/// Allocators that can look through user memory: the share of one lane out of some.
template <class A>
concept inspecting_allocator = allocator<A> && requires(const A a, std::uint64_t lane) {
  a.inspect(lane, lane);
};

/// A heap's metadata does not add up: memory was corrupted, or the allocator has a defect.
class heap_corrupted : public error {
 public:
  using error::error;
};

template <allocator Allocator = default_allocator, machine Machine = default_machine>
class heap {
 public:
  using allocator_type = Allocator;
  using machine_type = Machine;
  using ref_type = heap_ref<Allocator, Machine>;
  static constexpr abilities can = Allocator::can;

  /// Takes a pool of this size from the machine. Throws out_of_memory.
  explicit heap(bytes pool) : pool_size_(pool.value()) {
    check_size(pool_size_);
    metadata_size_ = quarry::metadata_bytes<Allocator>(pool_size_);
    owner_ = storage(can.owns_pool ? pool_size_ : 0, metadata_size_);
    start(owner_.pool(), owner_.metadata());
  }

  /// Lives in memory of the caller, which must be accessible to the machine and outlive the heap.
  heap(void* memory, bytes size) {
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    const std::uint64_t skipped = align_up(first, carve::alignment) - first;
    const std::uint64_t usable = size.value() > skipped ? size.value() - skipped : 0;
    metadata_size_ = align_up(quarry::metadata_bytes<Allocator>(usable), carve::alignment);
    pool_size_ = usable > metadata_size_
                     ? align_down(usable - metadata_size_, carve::alignment) : 0;
    if (memory == nullptr) throw error("a heap can not live at the null pointer");
    check_size(pool_size_);
    auto* pool = static_cast<std::byte*>(memory) + skipped;
    simt::memory<Machine>::zero(pool + pool_size_, metadata_size_);
    start(pool, pool + pool_size_);
  }

  heap(heap&& other) noexcept
      : owner_(std::move(other.owner_)),
        pool_(other.pool_),
        metadata_(std::exchange(other.metadata_, nullptr)),
        pool_size_(other.pool_size_),
        metadata_size_(other.metadata_size_),
        allocator_(other.allocator_) {}
  heap& operator=(heap&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(pool_, other.pool_);
    std::swap(metadata_, other.metadata_);
    std::swap(pool_size_, other.pool_size_);
    std::swap(metadata_size_, other.metadata_size_);
    std::swap(allocator_, other.allocator_);
    return *this;
  }
  /// Live blocks end with the pool. Where there is none, what layers keep for later goes back to the system,
  /// and live blocks stay.
  ~heap() {
    if constexpr (!can.owns_pool && draining_allocator<Allocator>)
      if (metadata_ != nullptr) try_drain();
  }

  /// What kernels get.
  ref_type ref() const { return ref_type(allocator_); }

  /// From the host, between kernels. On the GPU each is a kernel of its own: for a few blocks.
  void* malloc(std::size_t n) const;
  void free(void* p) const
    requires freeing_allocator<Allocator>;

  /// Frees everything at once: the heap is as new.
  void reset()
    requires(can.frees_all)
  {
    simt::memory<Machine>::zero(metadata_, metadata_size_);
    initialise();
  }

  /// What layers keep for later goes back to where they have it from.
  void drain() const
    requires draining_allocator<Allocator>;

  std::uint64_t pool_bytes() const { return pool_size_; }
  std::uint64_t metadata_bytes() const { return metadata_size_; }
  memory_range pool() const { return {pool_, can.owns_pool ? pool_size_ : 0}; }

  heap_statistics statistics() const {
    heap_statistics s = on_host([](const Allocator& a) { return a.statistics(); });
    s.metadata_bytes = metadata_size_;
    return s;
  }
  /// Walks the metadata. Empty: all is well; else what is wrong.
  std::string check_invariants() const {
    inspect();
    return on_host([](const Allocator& a) { return a.check_invariants(); });
  }
  /// The same, as an exception.
  void check() const {
    if (const std::string problem = check_invariants(); !problem.empty()) throw heap_corrupted(problem);
  }

  /// Lets a layer that watches user memory look through it.
  void inspect() const;

  /// Calls `read` with an allocator whose metadata the host can read: heap.on_host([](const auto& a) {
  /// return a.statistics(); }). The pool is the machine's all the same.
  template <class Read>
  auto on_host(Read&& read) const {
    if constexpr (std::is_same_v<Machine, cpu>) {
      return read(allocator_);
    } else {
      std::vector<std::uint64_t> copy(metadata_size_ / 8 + carve::alignment / 8 + 1);
      const auto first = reinterpret_cast<std::uintptr_t>(copy.data());
      auto* base = reinterpret_cast<std::byte*>(align_up(first, carve::alignment));
      simt::memory<Machine>::copy(base, metadata_, metadata_size_);
      carve parts(base);
      return read(Allocator(memory_range{pool_, pool_size_}, parts));
    }
  }

 private:
  // Pool and metadata in two pieces, so that the pool starts on a page.
  class storage {
   public:
    storage() : pool_(0), metadata_(0) {}
    storage(std::uint64_t pool, std::uint64_t metadata) : pool_(pool), metadata_(metadata) {}
    std::byte* pool() const { return pool_.data(); }
    std::byte* metadata() const { return metadata_.data(); }

   private:
    simt::array<std::byte, Machine> pool_;
    simt::array<std::byte, Machine> metadata_;
  };

  static void check_size(std::uint64_t pool) {
    if (pool >= can.min_pool) return;
    throw error("a heap of " + to_text(pool) + " is too small: this allocator needs a pool of at least " +
                to_text(can.min_pool));
  }

  void start(std::byte* pool, std::byte* metadata) {
    if constexpr (requires { Allocator::template reserve<Machine>(pool_size_); })
      Allocator::template reserve<Machine>(pool_size_);
    pool_ = pool;
    metadata_ = metadata;
    carve parts(metadata);
    allocator_ = Allocator(memory_range{pool, pool_size_}, parts);
    initialise();
  }
  void initialise() const;

  void try_drain() const noexcept {
    try {
      drain();
    } catch (...) {  // the machine has failed, or is gone
    }
  }

  storage owner_;
  std::byte* pool_ = nullptr;
  std::byte* metadata_ = nullptr;
  std::uint64_t pool_size_ = 0;
  std::uint64_t metadata_size_ = 0;
  Allocator allocator_;
};

namespace detail {

template <class Allocator>
struct initialise_kernel {
  Allocator allocator;
  QUARRY_DEVICE void operator()() const {
    allocator.initialise(simt::global_thread(), simt::grid_threads());
  }
};
template <class Allocator>
struct malloc_kernel {
  Allocator allocator;
  std::size_t n;
  void** out;
  QUARRY_DEVICE void operator()() const { *out = allocator.malloc(n); }
};
template <class Allocator>
struct free_kernel {
  Allocator allocator;
  void* block;
  QUARRY_DEVICE void operator()() const { allocator.free(block); }
};

template <class Allocator>
struct drain_kernel {
  Allocator allocator;
  QUARRY_DEVICE void operator()() const { allocator.drain(); }
};
template <class Allocator>
struct inspect_kernel {
  Allocator allocator;
  QUARRY_DEVICE void operator()() const {
    allocator.inspect(simt::global_thread(), simt::grid_threads());
  }
};

}  // namespace detail

template <allocator Allocator, machine Machine>
void heap<Allocator, Machine>::initialise() const {
  if constexpr (std::is_same_v<Machine, cpu>) {
    allocator_.initialise(0, 1);
  } else {
    launch<Machine>({512, 256}, detail::initialise_kernel<Allocator>{allocator_});
  }
}

template <allocator Allocator, machine Machine>
void* heap<Allocator, Machine>::malloc(std::size_t n) const {
  if constexpr (std::is_same_v<Machine, cpu>) {
    return allocator_.malloc(n);
  } else {
    simt::array<void*, Machine> out(1);
    launch<Machine>({1, 1}, detail::malloc_kernel<Allocator>{allocator_, n, out.data()});
    return out.to_host()[0];
  }
}

template <allocator Allocator, machine Machine>
void heap<Allocator, Machine>::free(void* p) const
  requires freeing_allocator<Allocator>
{
  if constexpr (std::is_same_v<Machine, cpu>) {
    allocator_.free(p);
  } else {
    launch<Machine>({1, 1}, detail::free_kernel<Allocator>{allocator_, p});
  }
}

template <allocator Allocator, machine Machine>
void heap<Allocator, Machine>::drain() const
  requires draining_allocator<Allocator>
{
  if constexpr (std::is_same_v<Machine, cpu>) {
    allocator_.drain();
  } else {
    launch<Machine>({1, 1}, detail::drain_kernel<Allocator>{allocator_});
  }
}

template <allocator Allocator, machine Machine>
void heap<Allocator, Machine>::inspect() const {
  if constexpr (inspecting_allocator<Allocator>) {
    if constexpr (std::is_same_v<Machine, cpu>) {
      allocator_.inspect(0, 1);
    } else {
      launch<Machine>({512, 256}, detail::inspect_kernel<Allocator>{allocator_});
    }
  }
}

}  // namespace quarry
