// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The allocator concept: the requirements on a type that heaps, the explorer and benchmarks use.
///
/// An allocator is a trivially copyable handle of a few words that kernels take by value. Its state
/// is the pool, which contains blocks and nothing else, and its metadata, which lies outside the
/// pool.
///
///   class example {
///    public:
///     static constexpr abilities can = {.frees_one = true, .reuses = true};
///     example(memory_range pool, carve& metadata);        // host; accesses neither
///     QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const;
///     QUARRY_DEVICE void* malloc(std::size_t n) const;    // nullptr: it failed, or n == 0
///     QUARRY_DEVICE void free(void* p) const;             // if can.frees_one; p may be nullptr
///     std::string check_invariants() const;               // quiescent; empty: they hold
///     heap_statistics statistics() const;                 // quiescent
///   };
///   static_assert(allocator<example>);
///
/// The contract of every allocator on both backends:
/// - malloc(n) returns a block of n bytes inside the pool, aligned to 16 bytes, and disjoint from
///   all live blocks.
/// - free(p) accepts a block that any lane of this or of an earlier kernel allocated.
/// - If can.reuses: once all blocks are freed, the pool serves the same requests as a new one.
/// - Any subset of lanes may call, under any control flow. A failed allocation ends after a bounded
///   number of steps under every schedule, and later calls of free make memory available again.
/// The abilities of an allocator are a constant, and a call that it does not support does not
/// compile.

#include <quarry/core/carve.hpp>
#include <quarry/core/config.hpp>
#include <quarry/core/statistics.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace quarry {

inline constexpr std::uint64_t block_alignment = 16;

/// What an allocator supports.
struct abilities {
  bool frees_one = false;                      // free(p)
  bool frees_all = true;                       // heap::reset()
  bool reuses = false;                         // freed memory is allocated again
  bool overwrites = false;                     // by design, malloc may return memory of live blocks
  bool owns_pool = true;                       // blocks are inside the pool of the heap
  std::uint64_t max_size = ~std::uint64_t{0};  // larger requests always fail
  std::uint64_t max_alignment = block_alignment;
  std::uint64_t min_pool = 64;
};

template <class A>
concept allocator = std::is_trivially_copyable_v<A> &&
    std::constructible_from<A, memory_range, carve&> &&
    requires(const A a, std::size_t n, std::uint64_t lane) {
  { A::can } -> std::convertible_to<abilities>;
  { a.malloc(n) } -> std::same_as<void*>;
  { a.initialise(lane, lane) } -> std::same_as<void>;
  { a.check_invariants() } -> std::same_as<std::string>;
  { a.statistics() } -> std::same_as<heap_statistics>;
} &&(!A::can.frees_one || requires(const A a, void* p) {
  { a.free(p) } -> std::same_as<void>;
});

template <class A>
concept freeing_allocator = allocator<A> && A::can.frees_one;

/// Allocators that know the usable size of a live block, which is at least the requested size.
template <class A>
concept sizing_allocator = allocator<A> && requires(const A a, void* p) {
  { a.usable_size(p) } -> std::same_as<std::uint64_t>;
};

/// Allocators whose pool can grow and shrink between kernels. The constructor receives the largest
/// pool, and initialise() makes all of it available. Then one lane calls resize(from, to), which
/// changes the size of the usable prefix of the pool from `from` to `to` bytes. It returns the new
/// size: `to`, rounded down to a size that the allocator can use, but not less than the end of the
/// last live block. Handles stay valid.
template <class A>
concept resizable_allocator = allocator<A> && requires(const A a, std::uint64_t n) {
  { a.resize(n, n) } -> std::same_as<std::uint64_t>;
};

/// Allocators that support alignments above 16 bytes, as a second argument.
template <class A>
concept aligning_allocator = allocator<A> && requires(const A a, std::size_t n) {
  { a.malloc(n, n) } -> std::same_as<void*>;
};

}  // namespace quarry
