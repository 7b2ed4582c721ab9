// SPDX-License-Identifier: Apache-2.0
#pragma once
/// growing_memory on a GPU: CUDA's virtual memory management.
///
///   cuMemAddressReserve   the range
///   cuMemCreate, cuMemMap, cuMemSetAccess   a piece of memory of up to 64 MiB, behind the others
///   cuMemUnmap            a piece goes; a part of one can not
///
/// So memory grows to the page (2 MiB) and shrinks to the end of a piece. A piece's handle is released once it is
/// mapped: the mapping keeps the memory. It lies on the device that is current when the range is made, and kernels of
/// that device may access it; cudaMemcpy and cudaMemset take its addresses as they take cudaMalloc's.
/// These are functions of the driver; they are asked for at run time, so that programs need not link libcuda.

#include <quarry/core/bits.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/heap/growing_memory.hpp>
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

namespace quarry {

namespace detail {

/// The driver's functions; made once.
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

  /// A failure in words.
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
    simt::check_cuda(cudaFree(nullptr), "starting CUDA");  // the driver's functions want a context
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
    constexpr unsigned version = 12000;  // they have been as they are since 10.2
    simt::check_cuda(
        cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found), name);
    if (found != cudaDriverEntryPointSuccess || address == nullptr)
      throw error(std::string("a heap that grows: the CUDA driver has no ") + name);
    function = reinterpret_cast<Function>(address);
  }

  decltype(&::cuGetErrorName) name_of;
};

}  // namespace detail

template <>
class growing_memory<cuda> {
 public:
  growing_memory() = default;
  explicit growing_memory(std::uint64_t reserved) {
    simt::check_cuda(cudaGetDevice(&device_), "current device");
    const CUmemAllocationProp what = kind();
    std::size_t page = 0;
    driver().check(driver().granularity(&page, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                   "size of a GPU's page");
    page_ = page;
    const std::uint64_t size = align_up(reserved, page_);
    if (const CUresult code = driver().reserve(&data_, size, 0, 0, 0); code != CUDA_SUCCESS)
      throw out_of_memory("the GPU can not reserve " + std::to_string(size) +
                          " bytes of addresses: " + driver().text(code));
    reserved_ = size;
  }
  growing_memory(growing_memory&& other) noexcept { swap(other); }
  growing_memory& operator=(growing_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~growing_memory() {
    if (reserved_ == 0) return;
    (void)cudaDeviceSynchronize();
    while (!pieces_.empty()) (void)drop_last();
    (void)driver().unreserve(data_, reserved_);
  }

  std::byte* data() const { return reinterpret_cast<std::byte*>(data_); }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t reserved() const { return reserved_; }

  void grow(std::uint64_t n) {
    const std::uint64_t to = align_up(n, page_);
    const std::uint64_t from = committed_;
    while (committed_ < to) {
      const CUresult code = add_piece(std::min(to - committed_, align_up(most_piece, page_)));
      if (code == CUDA_SUCCESS) continue;
      while (committed_ > from && drop_last() == CUDA_SUCCESS) {
      }
      std::size_t free = 0;
      std::size_t total = 0;
      (void)cudaMemGetInfo(&free, &total);
      throw out_of_memory("growing a heap from " + to_text(from) + " to " + to_text(to) + ": " +
                          driver().text(code) + "; the GPU has " + to_text(free) + " of " +
                          to_text(total) + " free");
    }
  }
  void shrink(std::uint64_t n) {
    simt::check_cuda(cudaDeviceSynchronize(), "waiting for kernels before memory goes");
    while (!pieces_.empty() && committed_ - pieces_.back() >= n)
      driver().check(drop_last(), "giving memory back");
  }

 private:
  static constexpr std::uint64_t most_piece = std::uint64_t{64} << 20;

  static const detail::virtual_memory_driver& driver() {
    return detail::virtual_memory_driver::instance();
  }
  CUmemAllocationProp kind() const {
    CUmemAllocationProp what{};
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    return what;
  }

  CUresult add_piece(std::uint64_t size) {
    const CUmemAllocationProp what = kind();
    CUmemGenericAllocationHandle handle{};
    if (const CUresult code = driver().create(&handle, size, &what, 0); code != CUDA_SUCCESS)
      return code;
    CUresult code = driver().map(data_ + committed_, size, 0, handle, 0);
    (void)driver().release(handle);
    if (code != CUDA_SUCCESS) return code;
    const CUmemAccessDesc access = {what.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    code = driver().set_access(data_ + committed_, size, &access, 1);
    if (code != CUDA_SUCCESS) {
      (void)driver().unmap(data_ + committed_, size);
      return code;
    }
    pieces_.push_back(size);
    committed_ += size;
    return code;
  }
  CUresult drop_last() {
    const std::uint64_t size = pieces_.back();
    pieces_.pop_back();
    committed_ -= size;
    return driver().unmap(data_ + committed_, size);
  }

  void swap(growing_memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(committed_, other.committed_);
    std::swap(reserved_, other.reserved_);
    std::swap(page_, other.page_);
    std::swap(device_, other.device_);
    pieces_.swap(other.pieces_);
  }

  CUdeviceptr data_ = 0;
  std::uint64_t committed_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t page_ = 1;
  int device_ = 0;
  std::vector<std::uint64_t> pieces_;  // sizes, front to end
};

}  // namespace quarry
#endif
