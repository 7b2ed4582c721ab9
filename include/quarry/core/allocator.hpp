// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The allocator concept: what a type must offer to live in a heap, be explored and be compared.
///
/// An allocator is a handle of a few words, trivially copyable, that kernels take by value. Its state
/// is the pool (user blocks, nothing else) and its metadata (elsewhere).
///
///   class example {
///    public:
///     static constexpr abilities can = {.frees_one = true, .reuses = true};
///     example(memory_range pool, carve& metadata);        // host; reads and writes neither
///     QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const;
///     QUARRY_DEVICE void* malloc(std::size_t n) const;    // nullptr: nothing fits, or n == 0
///     QUARRY_DEVICE void free(void* p) const;             // where can.frees_one; nullptr: nothing
///     std::string check_invariants() const;               // between kernels; empty: all is well
///     heap_statistics statistics() const;                 // between kernels
///   };
///   static_assert(allocator<example>);
///
/// The contract, for every allocator on both machines:
/// - malloc(n) gives n bytes, 16-byte aligned, disjoint from every live block, inside the pool.
/// - free takes a block from any lane of this or an earlier kernel.
/// - After everything is freed the pool serves again what it served when new (can.reuses).
/// - Any subset of lanes may call, in any control flow. A call that fails ends after a bounded number of
///   steps in any schedule, and later frees make memory usable again.
/// What an allocator can not do is a constant, and calling it does not compile.

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

/// What an allocator can do.
struct abilities {
  bool frees_one = false;   // free(p)
  bool frees_all = true;    // heap::reset() makes the pool as new
  bool reuses = false;      // freed memory is handed out again
  bool overwrites = false;  // hands out memory that may still be in use, by design
  bool owns_pool = true;    // blocks lie inside the heap's pool
  std::uint64_t max_size = ~std::uint64_t{0};  // larger requests fail whatever is free
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

/// Allocators that know how much a live block holds: at least what was asked for.
template <class A>
concept sizing_allocator = allocator<A> && requires(const A a, void* p) {
  { a.usable_size(p) } -> std::same_as<std::uint64_t>;
};

/// Allocators whose pool can change its length between kernels. The pool they are made for is the longest, and
/// initialise makes all of it available; then one lane calls resize(from, to): of a pool whose first `from` bytes are
/// in use, the first `to` shall be. Returns how many are now: rounded down to what the allocator can use, but shrinking
/// stops where the last block ends. Handles stay valid.
template <class A>
concept resizable_allocator = allocator<A> && requires(const A a, std::uint64_t n) {
  { a.resize(n, n) } -> std::same_as<std::uint64_t>;
};

/// Allocators that serve alignments above 16 take them as a second argument.
template <class A>
concept aligning_allocator = allocator<A> && requires(const A a, std::size_t n) {
  { a.malloc(n, n) } -> std::same_as<void*>;
};

}  // namespace quarry
