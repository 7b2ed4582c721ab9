// SPDX-License-Identifier: Apache-2.0
#pragma once
/// growing_memory on a GPU, with CUDA's virtual memory management.
///
///   cuMemAddressReserve                     reserves the address range
///   cuMemCreate, cuMemMap, cuMemSetAccess   add a chunk of up to 64 MiB behind the last one
///   cuMemUnmap                              removes the last chunk, as a whole
///
/// Memory therefore grows by pages of 2 MiB and shrinks by chunks. The handle of a chunk is
/// released once the chunk is mapped; the mapping keeps the memory. Memory lies on the device that
/// is current at construction, and kernels of this device can access it. cudaMemcpy and cudaMemset
/// accept its addresses. The driver functions are looked up at run time, so that programs need not
/// link libcuda.

#include <quarry/core/bits.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/heap/detail/growing_memory.hpp>
#include <quarry/simt/backend.hpp>
#include <quarry/simt/cuda_error.hpp>

#if QUARRY_CUDA
#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::detail {

/// The functions of the CUDA driver that growing_memory calls, looked up once per process.
class virtual_memory_driver {
 public:
  static const virtual_memory_driver& instance() {
    static const virtual_memory_driver driver;
    return driver;
  }

  decltype(&::cuMemAddressReserve) reserve;
  decltype(&::cuMemAddressFree) unreserve;
  decltype(&::cuMemCreate) create;
  decltype(&::cuMemRelease) release;
  decltype(&::cuMemMap) map;
  decltype(&::cuMemUnmap) unmap;
  decltype(&::cuMemSetAccess) set_access;
  decltype(&::cuMemGetAllocationGranularity) granularity;

  /// Returns the name of an error code.
  std::string text(CUresult code) const {
    const char* name = nullptr;
    return name_of(code, &name) == CUDA_SUCCESS ? name
                                                : "error " + std::to_string(static_cast<int>(code));
  }
  void check(CUresult code, const char* doing) const {
    if (code != CUDA_SUCCESS) throw error(std::string(doing) + ": " + text(code));
  }

 private:
  virtual_memory_driver() {
    simt::check_cuda(cudaFree(nullptr), "initialising CUDA");  // driver functions need a context
    find("cuMemAddressReserve", reserve);
    find("cuMemAddressFree", unreserve);
    find("cuMemCreate", create);
    find("cuMemRelease", release);
    find("cuMemMap", map);
    find("cuMemUnmap", unmap);
    find("cuMemSetAccess", set_access);
    find("cuMemGetAllocationGranularity", granularity);
    find("cuGetErrorName", name_of);
  }
  template <class Function>
  static void find(const char* name, Function& function) {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
    constexpr unsigned version = 12000;  // the interface is unchanged since CUDA 10.2
    simt::check_cuda(
        cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found), name);
    if (found != cudaDriverEntryPointSuccess || address == nullptr)
      throw error(
          std::string("a heap that grows needs ") + name +
          ", which this CUDA driver does not have: construct the heap without {.max = ...}");
    function = reinterpret_cast<Function>(address);
  }

  decltype(&::cuGetErrorName) name_of;
};

template <>
class growing_memory<cuda> {
 public:
  growing_memory() = default;
  explicit growing_memory(std::uint64_t reserved) {
    simt::check_cuda(cudaGetDevice(&device_), "querying the current device");
    const CUmemAllocationProp properties = chunk_properties();
    std::size_t page = 0;
    driver().check(driver().granularity(&page, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                   "querying the page size of the GPU");
    page_ = page;
    const std::uint64_t size = align_up(reserved, page_);
    if (const CUresult code = driver().reserve(&data_, size, 0, 0, 0); code != CUDA_SUCCESS)
      throw out_of_memory("reserving " + to_text(bytes(size)) +
                          " of GPU addresses for a heap failed: " + driver().text(code) +
                          "; lower {.max = ...}");
    reserved_ = size;
  }
  growing_memory(growing_memory&& other) noexcept { swap(other); }
  growing_memory& operator=(growing_memory&& other) noexcept {
    growing_memory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~growing_memory() {
    if (reserved_ == 0) return;
    (void)cudaDeviceSynchronize();
    while (!chunks_.empty()) (void)unmap_last_chunk();
    (void)driver().unreserve(data_, reserved_);
  }

  std::byte* data() const { return reinterpret_cast<std::byte*>(data_); }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t reserved() const { return reserved_; }

  void grow(std::uint64_t n) {
    const std::uint64_t to = align_up(n, page_);
    const std::uint64_t from = committed_;
    while (committed_ < to) {
      const CUresult code = map_chunk(std::min(to - committed_, align_up(max_chunk, page_)));
      if (code == CUDA_SUCCESS) continue;
      while (committed_ > from && unmap_last_chunk() == CUDA_SUCCESS) {
      }
      std::size_t free = 0;
      std::size_t total = 0;
      (void)cudaMemGetInfo(&free, &total);
      throw out_of_memory("growing a heap from " + to_text(from) + " to " + to_text(to) +
                          " failed: " + driver().text(code) + "; the GPU has " + to_text(free) +
                          " of " + to_text(total) + " free");
    }
  }
  void shrink(std::uint64_t n) {
    simt::check_cuda(cudaDeviceSynchronize(), "waiting for kernels before memory is unmapped");
    while (!chunks_.empty() && committed_ - chunks_.back() >= n)
      driver().check(unmap_last_chunk(), "unmapping memory");
  }

 private:
  static constexpr std::uint64_t max_chunk = std::uint64_t{64} << 20;

  static const virtual_memory_driver& driver() { return virtual_memory_driver::instance(); }
  CUmemAllocationProp chunk_properties() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    return properties;
  }

  CUresult map_chunk(std::uint64_t size) {
    const CUmemAllocationProp properties = chunk_properties();
    CUmemGenericAllocationHandle handle{};
    if (const CUresult code = driver().create(&handle, size, &properties, 0); code != CUDA_SUCCESS)
      return code;
    CUresult code = driver().map(data_ + committed_, size, 0, handle, 0);
    (void)driver().release(handle);
    if (code != CUDA_SUCCESS) return code;
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    code = driver().set_access(data_ + committed_, size, &access, 1);
    if (code != CUDA_SUCCESS) {
      (void)driver().unmap(data_ + committed_, size);
      return code;
    }
    chunks_.push_back(size);
    committed_ += size;
    return code;
  }
  CUresult unmap_last_chunk() {
    const std::uint64_t size = chunks_.back();
    chunks_.pop_back();
    committed_ -= size;
    return driver().unmap(data_ + committed_, size);
  }

  void swap(growing_memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(committed_, other.committed_);
    std::swap(reserved_, other.reserved_);
    std::swap(page_, other.page_);
    std::swap(device_, other.device_);
    chunks_.swap(other.chunks_);
  }

  CUdeviceptr data_ = 0;
  std::uint64_t committed_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t page_ = 1;
  int device_ = 0;
  std::vector<std::uint64_t> chunks_;  // sizes in address order
};

}  // namespace quarry::detail
#endif
