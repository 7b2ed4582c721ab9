// SPDX-License-Identifier: Apache-2.0
#pragma once
/// ptx_atomic: the atomic instructions of a GPU for words in global memory. atomic_ref (atomic.hpp)
/// uses them in device code.
///
/// A generic atomic costs far more than one for global memory. For example, GPUs have no 64-bit
/// `or` for shared memory, so for a generic address the compiler adds a test of the state space and
/// a loop. Hence all addresses are declared to be global. Relaxed operations are CUDA's intrinsics,
/// for which the compiler knows whether the result is used. All other operations are written in
/// PTX. All operations have device scope.

#include <quarry/core/config.hpp>

#if QUARRY_CUDA

#include <atomic>
#include <cstddef>
#include <type_traits>

/// An instruction with a memory order other than relaxed. The operands are the last arguments.
#define QUARRY_PTX_ORDERED(order, begin, end, ...)             \
  if ((order) == std::memory_order_acquire) {                  \
    asm volatile(begin ".acquire.gpu.global" end __VA_ARGS__); \
  } else if ((order) == std::memory_order_release) {           \
    asm volatile(begin ".release.gpu.global" end __VA_ARGS__); \
  } else {                                                     \
    asm volatile(begin ".acq_rel.gpu.global" end __VA_ARGS__); \
  }
/// A load of `v` from `word`, and a store of `v` to `word`.
#define QUARRY_PTX_LOAD(order, type, kind)                  \
  if ((order) == std::memory_order_acquire) {               \
    asm volatile("ld.acquire.gpu.global." type " %0, [%1];" \
                 : kind(v)                                  \
                 : "l"(address(word))                       \
                 : "memory");                               \
  } else {                                                  \
    asm volatile("ld.relaxed.gpu.global." type " %0, [%1];" \
                 : kind(v)                                  \
                 : "l"(address(word))                       \
                 : "memory");                               \
  }
#define QUARRY_PTX_STORE(order, type, kind)                 \
  if ((order) == std::memory_order_release) {               \
    asm volatile("st.release.gpu.global." type " [%0], %1;" \
                 :                                          \
                 : "l"(address(word)), kind(v)              \
                 : "memory");                               \
  } else {                                                  \
    asm volatile("st.relaxed.gpu.global." type " [%0], %1;" \
                 :                                          \
                 : "l"(address(word)), kind(v)              \
                 : "memory");                               \
  }
/// The operation `name` with a result. `narrow` and `wide` are its PTX for 32 and 64 bits;
/// `intrinsic` is the function of CUDA.
#define QUARRY_PTX_CHANGE(name, narrow, wide, bits, intrinsic)                    \
  __device__ static T name(T* word, T v, std::memory_order o) {                   \
    if (o == std::memory_order_relaxed)                                           \
      return static_cast<T>(intrinsic(global<bits>(word), static_cast<bits>(v))); \
    T old;                                                                        \
    if constexpr (sizeof(T) == 4) {                                               \
      QUARRY_PTX_ORDERED(o, "atom", "." narrow " %0, [%1], %2;",                  \
                         : "=r"(old)                                              \
                         : "l"(address(word)), "r"(v)                             \
                         : "memory")                                              \
    } else {                                                                      \
      QUARRY_PTX_ORDERED(o, "atom", "." wide " %0, [%1], %2;",                    \
                         : "=l"(old)                                              \
                         : "l"(address(word)), "l"(v)                             \
                         : "memory")                                              \
    }                                                                             \
    return old;                                                                   \
  }
/// The operation `name` without a result: the lane does not wait for memory. PTX has no `red` that
/// acquires; such an order uses `with_result`. The compiler sees all branches in a build without
/// optimization.
#define QUARRY_PTX_POST(name, with_result, narrow, wide, intrinsic) \
  __device__ static void name(T* word, T v, std::memory_order o) {  \
    if (o == std::memory_order_relaxed) {                           \
      (void)intrinsic(global<plain>(word), static_cast<plain>(v));  \
    } else if (o != std::memory_order_release) {                    \
      (void)with_result(word, v, o);                                \
    } else if constexpr (sizeof(T) == 4) {                          \
      asm volatile("red.release.gpu.global." narrow " [%0], %1;"    \
                   :                                                \
                   : "l"(address(word)), "r"(v)                     \
                   : "memory");                                     \
    } else {                                                        \
      asm volatile("red.release.gpu.global." wide " [%0], %1;"      \
                   :                                                \
                   : "l"(address(word)), "l"(v)                     \
                   : "memory");                                     \
    }                                                               \
  }

namespace quarry::simt {

/// T is an integer of 32 or 64 bits.
template <class T>
struct ptx_atomic {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));

  /// A cached load. The value may be stale: L1 caches are coherent within a block only.
  __device__ static T load_cached(T* word) {
    T v;
    if constexpr (sizeof(T) == 4)
      asm volatile("ld.relaxed.cta.global.u32 %0, [%1];" : "=r"(v) : "l"(address(word)) : "memory");
    else
      asm volatile("ld.relaxed.cta.global.u64 %0, [%1];" : "=l"(v) : "l"(address(word)) : "memory");
    return v;
  }
  __device__ static T load(T* word, std::memory_order o) {
    T v;
    if constexpr (sizeof(T) == 4) {
      QUARRY_PTX_LOAD(o, "u32", "=r")
    } else {
      QUARRY_PTX_LOAD(o, "u64", "=l")
    }
    return v;
  }
  __device__ static void store(T* word, T v, std::memory_order o) {
    if constexpr (sizeof(T) == 4) {
      QUARRY_PTX_STORE(o, "u32", "r")
    } else {
      QUARRY_PTX_STORE(o, "u64", "l")
    }
  }
  /// Returns: the value before the operation.
  __device__ static T compare_exchange(T* word, T expected, T desired, std::memory_order o) {
    if (o == std::memory_order_relaxed)
      return static_cast<T>(atomicCAS(global<plain>(word), static_cast<plain>(expected),
                                      static_cast<plain>(desired)));
    T old;
    if constexpr (sizeof(T) == 4) {
      QUARRY_PTX_ORDERED(o, "atom", ".cas.b32 %0, [%1], %2, %3;",
                         : "=r"(old)
                         : "l"(address(word)), "r"(expected), "r"(desired)
                         : "memory")
    } else {
      QUARRY_PTX_ORDERED(o, "atom", ".cas.b64 %0, [%1], %2, %3;",
                         : "=l"(old)
                         : "l"(address(word)), "l"(expected), "l"(desired)
                         : "memory")
    }
    return old;
  }

  QUARRY_PTX_CHANGE(exchange, "exch.b32", "exch.b64", plain, atomicExch)
  QUARRY_PTX_CHANGE(fetch_add, "add.u32", "add.u64", plain, atomicAdd)
  QUARRY_PTX_CHANGE(fetch_and, "and.b32", "and.b64", plain, atomicAnd)
  QUARRY_PTX_CHANGE(fetch_or, "or.b32", "or.b64", plain, atomicOr)
  QUARRY_PTX_CHANGE(fetch_xor, "xor.b32", "xor.b64", plain, atomicXor)
  __device__ static T fetch_min(T* word, T v, std::memory_order o) {
    return std::is_signed_v<T> ? signed_min(word, v, o) : unsigned_min(word, v, o);
  }
  __device__ static T fetch_max(T* word, T v, std::memory_order o) {
    return std::is_signed_v<T> ? signed_max(word, v, o) : unsigned_max(word, v, o);
  }
  QUARRY_PTX_POST(add, fetch_add, "add.u32", "add.u64", atomicAdd)
  QUARRY_PTX_POST(bit_and, fetch_and, "and.b32", "and.b64", atomicAnd)
  QUARRY_PTX_POST(bit_or, fetch_or, "or.b32", "or.b64", atomicOr)

 private:
  // The parameter types of CUDA's intrinsics.
  using plain = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
  using ordered = std::conditional_t<sizeof(T) == 4, int, long long>;

  QUARRY_PTX_CHANGE(unsigned_min, "min.u32", "min.u64", plain, atomicMin)
  QUARRY_PTX_CHANGE(unsigned_max, "max.u32", "max.u64", plain, atomicMax)
  QUARRY_PTX_CHANGE(signed_min, "min.s32", "min.s64", ordered, atomicMin)
  QUARRY_PTX_CHANGE(signed_max, "max.s32", "max.s64", ordered, atomicMax)

  template <class Bits>
  __device__ static Bits* global(T* word) {
    __builtin_assume(__isGlobal(word));
    return reinterpret_cast<Bits*>(word);
  }
  __device__ static std::size_t address(T* word) { return __cvta_generic_to_global(word); }
};

/// Stores 0 to four adjacent words with one access. Each word is stored with relaxed order.
/// Requires: `words` is aligned to 16 bytes.
__device__ inline void ptx_clear_four(unsigned* words) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %1, %1, %1};"
               :
               : "l"(__cvta_generic_to_global(words)), "r"(0)
               : "memory");
}

/// A fence with device scope: orders all earlier accesses before all later accesses.
__device__ inline void ptx_fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }
/// A fence that orders all earlier accesses before later writes. It keeps the contents of the L1
/// cache.
__device__ inline void ptx_release_fence() {
#if __CUDA_ARCH__ >= 900 && (__CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ >= 8)
  asm volatile("fence.release.gpu;" : : : "memory");
#else
  ptx_fence();
#endif
}

}  // namespace quarry::simt

#undef QUARRY_PTX_ORDERED
#undef QUARRY_PTX_LOAD
#undef QUARRY_PTX_STORE
#undef QUARRY_PTX_CHANGE
#undef QUARRY_PTX_POST

#endif  // QUARRY_CUDA
