// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Variants of allocators that only the benchmark uses: other template arguments, for figures that
/// vary such an argument, and FDGMalloc through its own interface.

#include <quarry/heap/named.hpp>

#include <cstdint>
#include <string_view>

namespace quarry {

// XMalloc with 1 to 64 FIFOs per size class, as in the paper; the FIFOs of a class hold 256 blocks
// together.
template <std::uint32_t Fifos>
using fifo_variant = warp_aggregated<buffer<system_heap, Fifos>>;
// ScatterAlloc with pages larger than the 4 KiB of the library.
template <std::uint64_t KiB>
using page_variant = scatter<KiB * 1024>;
// FDGMalloc as in the paper: each warp opens an arena and ends it in the same kernel. fdg_arenas
// uses the upstream of the library's FDGMalloc; the other two use CUDA's malloc, with and without
// superblocks.
using fdg_arenas = warp_arena<cfmmalloc>;
using fdg_over_system = warp_arena<system_heap>;
using fdg_bare = warp_arena<system_heap, 0>;

template <>
inline constexpr allocator_label label_of<fifo_variant<1>> = {"XMalloc, 1 FIFO", {}, {}};
template <>
inline constexpr allocator_label label_of<fifo_variant<2>> = {"XMalloc, 2 FIFOs", {}, {}};
template <>
inline constexpr allocator_label label_of<fifo_variant<4>> = {"XMalloc, 4 FIFOs", {}, {}};
template <>
inline constexpr allocator_label label_of<fifo_variant<8>> = {"XMalloc, 8 FIFOs", {}, {}};
template <>
inline constexpr allocator_label label_of<fifo_variant<16>> = {"XMalloc, 16 FIFOs", {}, {}};
template <>
inline constexpr allocator_label label_of<fifo_variant<32>> = {"XMalloc, 32 FIFOs", {}, {}};
template <>
inline constexpr allocator_label label_of<fifo_variant<64>> = {"XMalloc, 64 FIFOs", {}, {}};
template <>
inline constexpr allocator_label label_of<page_variant<16>> = {"ScatterAlloc, 16 KiB", {}, {}};
template <>
inline constexpr allocator_label label_of<page_variant<64>> = {"ScatterAlloc, 64 KiB", {}, {}};
template <>
inline constexpr allocator_label label_of<page_variant<256>> = {"ScatterAlloc, 256 KiB", {}, {}};
template <>
inline constexpr allocator_label label_of<page_variant<1024>> = {"ScatterAlloc, 1 MiB", {}, {}};
template <>
inline constexpr allocator_label label_of<page_variant<4096>> = {"ScatterAlloc, 4 MiB", {}, {}};
template <>
inline constexpr allocator_label label_of<page_variant<16384>> = {"ScatterAlloc, 16 MiB", {}, {}};
template <>
inline constexpr allocator_label label_of<page_variant<65536>> = {"ScatterAlloc, 64 MiB", {}, {}};
template <>
inline constexpr allocator_label label_of<fdg_arenas> = {"FDGMalloc, arenas", {}, {}};
template <>
inline constexpr allocator_label label_of<fdg_over_system> = {"FDGMalloc, over CudaMalloc", {}, {}};
template <>
inline constexpr allocator_label label_of<fdg_bare> = {"FDGMalloc, no superblocks", {}, {}};

using bench_variants =
    allocator_list<fifo_variant<1>, fifo_variant<2>, fifo_variant<4>, fifo_variant<8>,
                   fifo_variant<16>, fifo_variant<32>, fifo_variant<64>, page_variant<16>,
                   page_variant<64>, page_variant<256>, page_variant<1024>, page_variant<4096>,
                   page_variant<16384>, page_variant<65536>, fdg_arenas, fdg_over_system, fdg_bare>;

}  // namespace quarry
