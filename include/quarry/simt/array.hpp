// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Memory of a backend, and arrays in it that the host reads and writes between kernels.

#include <quarry/core/error.hpp>
#include <quarry/simt/backend.hpp>
#include <quarry/simt/cuda_error.hpp>
#include <quarry/simt/stream.hpp>

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::simt {

/// Allocates, copies and clears the memory of a backend. New memory is zero. copy() always waits
/// for its stream, zero() never does (stream.hpp).
template <class Backend>
struct memory;

template <>
struct memory<cpu> {
  static void* allocate(std::uint64_t size, stream_ref<cpu> = {}) {
    if (size == 0) return nullptr;
    void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      throw out_of_memory("the host can not map " + std::to_string(size) + " bytes");
    return p;
  }
  static void release(void* p, std::uint64_t size) noexcept {
    if (p != nullptr) ::munmap(p, size);
  }
  static void copy(void* to, const void* from, std::uint64_t size, stream_ref<cpu> = {}) {
    if (size != 0) std::memcpy(to, from, size);
  }
  static void zero(void* p, std::uint64_t size, stream_ref<cpu> = {}) {
    if (size != 0) std::memset(p, 0, size);
  }
};

#if QUARRY_CUDA
template <>
struct memory<cuda> {
  static void* allocate(std::uint64_t size, stream_ref<cuda> stream = {}) {
    if (size == 0) return nullptr;
    void* p = nullptr;
    const cudaError_t code = cudaMalloc(&p, size);
    if (code != cudaErrorMemoryAllocation) {
      check_cuda(code, "cudaMalloc");  // no driver, no GPU, or the error of an earlier kernel
    } else {
      (void)cudaGetLastError();
      std::size_t free = 0;
      std::size_t total = 0;
      (void)cudaMemGetInfo(&free, &total);
      throw out_of_memory("cudaMalloc of " + std::to_string(size) +
                          " bytes: " + cudaGetErrorString(code) + "; the GPU has " +
                          std::to_string(free) + " of " + std::to_string(total) + " bytes free");
    }
    zero(p, size, stream);
    if (!stream.names_stream()) stream.synchronize();
    return p;
  }
  static void release(void* p, std::uint64_t) noexcept { (void)cudaFree(p); }
  static void copy(void* to, const void* from, std::uint64_t size, stream_ref<cuda> stream = {}) {
    if (size == 0) return;
    // cudaMemcpy from pageable memory may return before the last bytes have arrived on the device,
    // and a non-blocking stream does not wait for them. So both forms synchronize.
    check_cuda(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream.get()), "copying memory");
    stream.synchronize();
  }
  static void zero(void* p, std::uint64_t size, stream_ref<cuda> stream = {}) {
    if (size != 0) check_cuda(cudaMemsetAsync(p, 0, size, stream.get()), "clearing memory");
  }
};
#endif

/// An array of n elements in the memory of a backend, initially zero.
template <class T, class Backend>
class array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit array(std::size_t n, stream_ref<Backend> stream = {})
      : data_(static_cast<T*>(memory<Backend>::allocate(size_of(n), stream))), size_(n) {}
  array(array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  array& operator=(array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~array() { memory<Backend>::release(data_, size_ * sizeof(T)); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }

  std::vector<T> to_host() const {
    std::vector<T> out(size_);
    memory<Backend>::copy(out.data(), data_, size_ * sizeof(T));
    return out;
  }
  void from_host(std::span<const T> values) {
    if (values.size() != size_)
      throw error("an array of " + std::to_string(size_) + " elements can not be filled from " +
                  std::to_string(values.size()) + " values");
    memory<Backend>::copy(data_, values.data(), size_ * sizeof(T));
  }
  void fill_zero() { memory<Backend>::zero(data_, size_ * sizeof(T)); }

 private:
  static std::uint64_t size_of(std::size_t n) {
    constexpr std::size_t most = ~std::size_t{0} / sizeof(T);
    if (n > most)
      throw out_of_memory("an array of " + std::to_string(n) +
                          " elements is too large; the maximum is " + std::to_string(most) +
                          " elements of " + std::to_string(sizeof(T)) + " bytes");
    return n * sizeof(T);
  }

  T* data_;
  std::size_t size_;
};

}  // namespace quarry::simt
