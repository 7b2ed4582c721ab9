// SPDX-License-Identifier: Apache-2.0
#pragma once
/// atomic_ref: atomic operations on a word in memory that lanes share.
///
/// CUDA: each operation has device scope and is one instruction for global memory. The word must be
/// in global memory (detail/ptx_atomic.hpp).
/// CPU: the operations are those of std::atomic_ref. Each is a scheduling point of the executor, is
/// counted, and is reported to the tracer.
///
/// Every operation names its memory order, since race detectors do not see separate fences.
/// Operations without a result (`add`, `sub`, `bit_and`, `bit_or`) do not make the lane wait for
/// memory.
///
/// T is an integer of 32 or 64 bits.

#include <quarry/core/config.hpp>
#include <quarry/simt/detail/executor_interface.hpp>
#include <quarry/simt/detail/ptx_atomic.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace quarry::simt {

inline constexpr std::memory_order relaxed = std::memory_order_relaxed;
inline constexpr std::memory_order acquire = std::memory_order_acquire;
inline constexpr std::memory_order release = std::memory_order_release;
inline constexpr std::memory_order acq_rel = std::memory_order_acq_rel;

/// Memory orders that are relaxed on a GPU, where the surrounding code already provides the
/// ordering. There a fence costs as much as two atomics, and an acquire invalidates the L1 cache.
/// On the CPU each is the standard order that is named first.
///   by_value        Acquire, for a read on whose value every later access depends, through an
///                   address or a branch. A GPU does not speculate: it performs no access before
///                   its address and its condition are known. The later accesses must bypass the L1
///                   cache, as atomic loads do, or read data that only this lane writes.
///   after_loads     Release, for a write behind a branch on the results of loads or atomics. These
///                   accesses are complete, and other lanes may overwrite the words that were read.
///   before_fence    Acquire, for reads of several words that one fence_loads() follows.
///   after_fence     Release, for a write that a fence_stores() precedes.
///   between_fences  Acquire and release, with a fence_stores() before the access. A release to the
///                   lane that uses the acquired data must follow.
#if QUARRY_DEVICE_CODE
inline constexpr std::memory_order by_value = std::memory_order_relaxed;
inline constexpr std::memory_order after_loads = std::memory_order_relaxed;
inline constexpr std::memory_order before_fence = std::memory_order_relaxed;
inline constexpr std::memory_order after_fence = std::memory_order_relaxed;
inline constexpr std::memory_order between_fences = std::memory_order_relaxed;
#else
inline constexpr std::memory_order by_value = std::memory_order_acquire;
inline constexpr std::memory_order after_loads = std::memory_order_release;
inline constexpr std::memory_order before_fence = std::memory_order_acquire;
inline constexpr std::memory_order after_fence = std::memory_order_release;
inline constexpr std::memory_order between_fences = std::memory_order_acq_rel;
#endif
QUARRY_DEVICE inline void fence_loads() {
#if QUARRY_DEVICE_CODE
  ptx_fence();
#endif
}
QUARRY_DEVICE inline void fence_stores() {
#if QUARRY_DEVICE_CODE
  ptx_release_fence();
#endif
}

namespace detail {

/// A scheduling point of the running lane. It has no effect on a host thread outside kernels.
inline void before_access() {
  if (executor_interface* e = executor_interface::current()) {
    tsan_ignore guard;
    e->before_access();
  }
}
/// Counts an access of the running lane and reports it to the tracer.
inline void after_access(access kind, const char* what, const void* where, std::uint64_t before,
                         std::uint64_t after) {
  if (executor_interface* e = executor_interface::current()) {
    tsan_ignore guard;
    e->after_access(kind, what, where, before, after);
  }
}

/// The memory order of a compare_exchange that fails: it only loads.
QUARRY_DEVICE constexpr std::memory_order on_failure(std::memory_order o) {
  if (o == std::memory_order_acq_rel) return std::memory_order_acquire;
  return o == std::memory_order_release ? std::memory_order_relaxed : o;
}

}  // namespace detail

template <class T>
concept atomic_word = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

template <atomic_word T>
class atomic_ref {
 public:
  using value_type = T;
  QUARRY_DEVICE explicit atomic_ref(T& word) : word_(&word) {}

  QUARRY_DEVICE T load(std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::load(word_, o);
#else
    detail::before_access();
    const T v = std::atomic_ref<T>(*word_).load(o);
    detail::after_access(detail::access::load, "load", word_, raw(v), raw(v));
    return v;
#endif
  }

  /// A cached load: returns a value that the word had at some time during this kernel. On a GPU the
  /// L1 cache serves it, so that many lanes can poll one word without contention. The result is a
  /// hint.
  QUARRY_DEVICE T load_cached() const {
#if QUARRY_DEVICE_CODE
    return gpu::load_cached(word_);
#else
    return load(relaxed);
#endif
  }

  QUARRY_DEVICE void store(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::store(word_, v, o);
#else
    detail::before_access();
    std::atomic_ref<T>(*word_).store(v, o);
    detail::after_access(detail::access::store, "store", word_, raw(v), raw(v));
#endif
  }

  QUARRY_DEVICE T exchange(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::exchange(word_, v, o);
#else
    return on_cpu(
        "exchange", detail::access::atomic, [&](auto w) { return w.exchange(v, o); },
        [&](T) { return v; });
#endif
  }

  /// A strong compare-and-swap. On failure `expected` receives the value of the word.
  QUARRY_DEVICE bool compare_exchange(T& expected, T desired, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    const T found = gpu::compare_exchange(word_, expected, desired, o);
    const bool done = found == expected;
    expected = found;
    return done;
#else
    detail::before_access();
    const bool done = std::atomic_ref<T>(*word_).compare_exchange_strong(expected, desired, o,
                                                                         detail::on_failure(o));
    detail::after_access(detail::access::atomic,
                         done ? "compare_exchange" : "compare_exchange (failed)", word_,
                         raw(expected), raw(done ? desired : expected));
    return done;
#endif
  }

  QUARRY_DEVICE T fetch_add(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_add(word_, v, o);
#else
    return on_cpu(
        "fetch_add", detail::access::atomic, [&](auto w) { return w.fetch_add(v, o); },
        [&](T x) { return static_cast<T>(raw(x) + raw(v)); });
#endif
  }
  QUARRY_DEVICE T fetch_sub(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_add(word_, negative(v), o);
#else
    return on_cpu(
        "fetch_sub", detail::access::atomic, [&](auto w) { return w.fetch_sub(v, o); },
        [&](T x) { return static_cast<T>(raw(x) - raw(v)); });
#endif
  }
  QUARRY_DEVICE T fetch_and(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_and(word_, v, o);
#else
    return on_cpu(
        "fetch_and", detail::access::atomic, [&](auto w) { return w.fetch_and(v, o); },
        [&](T x) { return static_cast<T>(x & v); });
#endif
  }
  QUARRY_DEVICE T fetch_or(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_or(word_, v, o);
#else
    return on_cpu(
        "fetch_or", detail::access::atomic, [&](auto w) { return w.fetch_or(v, o); },
        [&](T x) { return static_cast<T>(x | v); });
#endif
  }
  QUARRY_DEVICE T fetch_xor(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_xor(word_, v, o);
#else
    return on_cpu(
        "fetch_xor", detail::access::atomic, [&](auto w) { return w.fetch_xor(v, o); },
        [&](T x) { return static_cast<T>(x ^ v); });
#endif
  }
  QUARRY_DEVICE T fetch_min(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_min(word_, v, o);
#else
    const auto pick = [&](T x) { return v < x ? v : x; };
    return on_cpu(
        "fetch_min", detail::access::atomic, [&](auto w) { return replace(w, pick, o); }, pick);
#endif
  }
  QUARRY_DEVICE T fetch_max(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_max(word_, v, o);
#else
    const auto pick = [&](T x) { return v > x ? v : x; };
    return on_cpu(
        "fetch_max", detail::access::atomic, [&](auto w) { return replace(w, pick, o); }, pick);
#endif
  }

  // Operations without a result: the lane does not wait for memory.
  QUARRY_DEVICE void add(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::add(word_, v, o);
#else
    on_cpu(
        "add", detail::access::posted_atomic, [&](auto w) { return w.fetch_add(v, o); },
        [&](T x) { return static_cast<T>(raw(x) + raw(v)); });
#endif
  }
  QUARRY_DEVICE void sub(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::add(word_, negative(v), o);
#else
    on_cpu(
        "sub", detail::access::posted_atomic, [&](auto w) { return w.fetch_sub(v, o); },
        [&](T x) { return static_cast<T>(raw(x) - raw(v)); });
#endif
  }
  QUARRY_DEVICE void bit_and(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::bit_and(word_, v, o);
#else
    on_cpu(
        "bit_and", detail::access::posted_atomic, [&](auto w) { return w.fetch_and(v, o); },
        [&](T x) { return static_cast<T>(x & v); });
#endif
  }
  QUARRY_DEVICE void bit_or(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::bit_or(word_, v, o);
#else
    on_cpu(
        "bit_or", detail::access::posted_atomic, [&](auto w) { return w.fetch_or(v, o); },
        [&](T x) { return static_cast<T>(x | v); });
#endif
  }

 private:
#if QUARRY_DEVICE_CODE
  using gpu = ptx_atomic<T>;
  __device__ static T negative(T v) { return static_cast<T>(std::make_unsigned_t<T>{0} - raw(v)); }
#endif
  // The bits of a value. The tracer shows them, and additions on them do not overflow.
  QUARRY_DEVICE static constexpr std::uint64_t raw(T v) {
    return static_cast<std::make_unsigned_t<T>>(v);
  }
  template <class Change, class Result>
  T on_cpu(const char* what, detail::access kind, Change&& change, Result&& result) const {
    detail::before_access();
    const T old = change(std::atomic_ref<T>(*word_));
    detail::after_access(kind, what, word_, raw(old), raw(result(old)));
    return old;
  }
  template <class Pick>
  static T replace(std::atomic_ref<T> w, Pick&& pick, std::memory_order o) {
    T old = w.load(relaxed);
    while (!w.compare_exchange_weak(old, pick(old), o, detail::on_failure(o))) {
    }
    return old;
  }

  T* word_;
};

/// Effects: stores 0 to four adjacent words, each with a relaxed store. On a GPU it is one access.
/// Requires: `words` is aligned to 16 bytes.
QUARRY_DEVICE inline void clear_four(std::uint32_t* words) {
#if QUARRY_DEVICE_CODE
  ptx_clear_four(words);
#else
  for (unsigned i = 0; i < 4; ++i) atomic_ref<std::uint32_t>(words[i]).store(0, relaxed);
#endif
}

}  // namespace quarry::simt
