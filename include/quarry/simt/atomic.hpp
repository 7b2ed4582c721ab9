// SPDX-License-Identifier: Apache-2.0
#pragma once
/// atomic_ref: a shared word that lanes change together.
///
/// On the GPU it has device scope and is the bare instruction for global memory, where the word must lie
/// (ptx_atomic.hpp). On the CPU it is std::atomic_ref, and each operation is a place where the executor may switch
/// lanes, counts the access and can be watched. The memory order is always written out, since a fence
/// elsewhere is invisible to race detectors. Operations without a result (`add`, `bit_or`, ...) do not
/// make the lane wait for memory.
///
/// T: an integer of 32 or 64 bits.

#include <quarry/core/config.hpp>
#include <quarry/simt/executor/executor.hpp>
#include <quarry/simt/ptx_atomic.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace quarry::simt {

inline constexpr std::memory_order relaxed = std::memory_order_relaxed;
inline constexpr std::memory_order acquire = std::memory_order_acquire;
inline constexpr std::memory_order release = std::memory_order_release;
inline constexpr std::memory_order acq_rel = std::memory_order_acq_rel;
/// Orders that are cheaper on a GPU, where a fence costs as much as two atomics and an acquire empties the
/// multiprocessor's cache. On the CPU they are what the name of the plain order says.
///   by_value     acquire, for a read whose value everything depends on that comes after: an address computed from
///                it, or a branch. A GPU performs no access before it knows where and whether. Data reached that
///                way must not be read through the cache (atomic loads are not), or be the reader's own.
///   after_loads  release, for a write after a branch on what loads or atomics found: these are over, and others may
///                overwrite what was read.
///   before_fence acquire, for reads of many words, and then one fence_loads() for all of them.
///   after_fence  release, for a write with a fence_stores() some way before it, while other things happen.
///   between_fences  acquire and release, with a fence_stores() before it, and after it a release to whoever goes on
///                with what was acquired.
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

namespace exec {

/// An access of the running lane, or of a plain host thread (then nothing is counted).
inline void before_access() {
  if (executor* e = executor::here()) {
    unseen guard;
    e->point();
  }
}
inline void after_access(access kind, const char* what, const void* where, std::uint64_t before,
                         std::uint64_t after) {
  if (executor* e = executor::here()) {
    unseen guard;
    e->note(kind, what, where, before, after);
  }
}

/// The order of the load in a failed exchange: no release in it.
QUARRY_DEVICE constexpr std::memory_order on_failure(std::memory_order o) {
  if (o == std::memory_order_acq_rel) return std::memory_order_acquire;
  return o == std::memory_order_release ? std::memory_order_relaxed : o;
}

}  // namespace exec

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
    exec::before_access();
    const T v = std::atomic_ref<T>(*word_).load(o);
    exec::after_access(exec::access::load, "load", word_, raw(v), raw(v));
    return v;
#endif
  }

  /// What it was at some time in this kernel: on a GPU from the multiprocessor's own cache, so that thousands may ask for
  /// one word and not queue. For advice only.
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
    exec::before_access();
    std::atomic_ref<T>(*word_).store(v, o);
    exec::after_access(exec::access::store, "store", word_, raw(v), raw(v));
#endif
  }

  QUARRY_DEVICE T exchange(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::exchange(word_, v, o);
#else
    return on_cpu(
        "exchange", exec::access::atomic, [&](auto w) { return w.exchange(v, o); },
        [&](T) { return v; });
#endif
  }

  /// Strong. On failure `expected` becomes the value found.
  QUARRY_DEVICE bool compare_exchange(T& expected, T desired, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    const T found = gpu::compare_exchange(word_, expected, desired, o);
    const bool done = found == expected;
    expected = found;
    return done;
#else
    exec::before_access();
    const bool done = std::atomic_ref<T>(*word_).compare_exchange_strong(expected, desired, o,
                                                                         exec::on_failure(o));
    exec::after_access(exec::access::atomic,
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
        "fetch_add", exec::access::atomic, [&](auto w) { return w.fetch_add(v, o); },
        [&](T x) { return static_cast<T>(raw(x) + raw(v)); });
#endif
  }
  QUARRY_DEVICE T fetch_sub(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_add(word_, negative(v), o);
#else
    return on_cpu(
        "fetch_sub", exec::access::atomic, [&](auto w) { return w.fetch_sub(v, o); },
        [&](T x) { return static_cast<T>(raw(x) - raw(v)); });
#endif
  }
  QUARRY_DEVICE T fetch_and(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_and(word_, v, o);
#else
    return on_cpu(
        "fetch_and", exec::access::atomic, [&](auto w) { return w.fetch_and(v, o); },
        [&](T x) { return static_cast<T>(x & v); });
#endif
  }
  QUARRY_DEVICE T fetch_or(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_or(word_, v, o);
#else
    return on_cpu(
        "fetch_or", exec::access::atomic, [&](auto w) { return w.fetch_or(v, o); },
        [&](T x) { return static_cast<T>(x | v); });
#endif
  }
  QUARRY_DEVICE T fetch_xor(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_xor(word_, v, o);
#else
    return on_cpu(
        "fetch_xor", exec::access::atomic, [&](auto w) { return w.fetch_xor(v, o); },
        [&](T x) { return static_cast<T>(x ^ v); });
#endif
  }
  QUARRY_DEVICE T fetch_min(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_min(word_, v, o);
#else
    const auto pick = [&](T x) { return v < x ? v : x; };
    return on_cpu(
        "fetch_min", exec::access::atomic, [&](auto w) { return replace(w, pick, o); }, pick);
#endif
  }
  QUARRY_DEVICE T fetch_max(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    return gpu::fetch_max(word_, v, o);
#else
    const auto pick = [&](T x) { return v > x ? v : x; };
    return on_cpu(
        "fetch_max", exec::access::atomic, [&](auto w) { return replace(w, pick, o); }, pick);
#endif
  }

  // The same without a result: the lane does not wait.
  QUARRY_DEVICE void add(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::add(word_, v, o);
#else
    on_cpu(
        "add", exec::access::posted_atomic, [&](auto w) { return w.fetch_add(v, o); },
        [&](T x) { return static_cast<T>(raw(x) + raw(v)); });
#endif
  }
  QUARRY_DEVICE void sub(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::add(word_, negative(v), o);
#else
    on_cpu(
        "sub", exec::access::posted_atomic, [&](auto w) { return w.fetch_sub(v, o); },
        [&](T x) { return static_cast<T>(raw(x) - raw(v)); });
#endif
  }
  QUARRY_DEVICE void bit_and(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::bit_and(word_, v, o);
#else
    on_cpu(
        "bit_and", exec::access::posted_atomic, [&](auto w) { return w.fetch_and(v, o); },
        [&](T x) { return static_cast<T>(x & v); });
#endif
  }
  QUARRY_DEVICE void bit_or(T v, std::memory_order o) const {
#if QUARRY_DEVICE_CODE
    gpu::bit_or(word_, v, o);
#else
    on_cpu(
        "bit_or", exec::access::posted_atomic, [&](auto w) { return w.fetch_or(v, o); },
        [&](T x) { return static_cast<T>(x | v); });
#endif
  }

 private:
#if QUARRY_DEVICE_CODE
  using gpu = ptx_atomic<T>;
  __device__ static T negative(T v) { return static_cast<T>(std::make_unsigned_t<T>{0} - raw(v)); }
#endif
  // Values as watchers see them; also the way to add without signed overflow.
  QUARRY_DEVICE static constexpr std::uint64_t raw(T v) {
    return static_cast<std::make_unsigned_t<T>>(v);
  }
  template <class Change, class Result>
  T on_cpu(const char* what, exec::access kind, Change&& change, Result&& result) const {
    exec::before_access();
    const T old = change(std::atomic_ref<T>(*word_));
    exec::after_access(kind, what, word_, raw(old), raw(result(old)));
    return old;
  }
  template <class Pick>
  static T replace(std::atomic_ref<T> w, Pick&& pick, std::memory_order o) {
    T old = w.load(relaxed);
    while (!w.compare_exchange_weak(old, pick(old), o, exec::on_failure(o))) {
    }
    return old;
  }

  T* word_;
};

/// Stores 0 to four words side by side, the first at a multiple of 16 bytes. On a GPU it is one access, but each word is
/// stored for itself, relaxed.
QUARRY_DEVICE inline void clear_four(std::uint32_t* words) {
#if QUARRY_DEVICE_CODE
  ptx_clear_four(words);
#else
  for (unsigned i = 0; i < 4; ++i) atomic_ref<std::uint32_t>(words[i]).store(0, relaxed);
#endif
}

}  // namespace quarry::simt
