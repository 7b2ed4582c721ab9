// SPDX-License-Identifier: Apache-2.0
/// Device code that must compile without optimization (nvcc -G): every atomic operation with an
/// order that is known at run time only.
#include <quarry/simt/atomic.hpp>

#include <atomic>
#include <cstdint>

namespace {

template <class T>
__device__ T all_operations(T* word, T v, std::memory_order o) {
  const quarry::simt::atomic_ref<T> a(*word);
  a.store(v, o);
  a.add(v, o);
  a.bit_and(v, o);
  a.bit_or(v, o);
  T expected = v;
  a.compare_exchange(expected, v, o);
  return a.load(o) + a.exchange(v, o) + a.fetch_add(v, o) + a.fetch_and(v, o) + a.fetch_or(v, o) +
         a.fetch_xor(v, o) + a.fetch_min(v, o) + a.fetch_max(v, o);
}

}  // namespace

__global__ void atomics(std::uint32_t* narrow, std::uint64_t* wide, std::memory_order o) {
  *narrow = all_operations(narrow, std::uint32_t{3}, o);
  *wide = all_operations(wide, std::uint64_t{3}, o);
}
