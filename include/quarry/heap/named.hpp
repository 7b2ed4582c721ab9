// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The list of all allocators with their names in the papers. The command line, the tests and the
/// tables use it: a new allocator needs a label here and an entry in `all_allocators`. A name that
/// ends in -warp is the warp-aggregated form of an allocator. XMalloc and FDGMalloc aggregate
/// requests themselves and have one name only.

#include <quarry/layer/arena_per_warp.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/layer/xmalloc.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/scatter/scatter.hpp>
#include <quarry/pool/slab/slab.hpp>
#include <quarry/pool/system_heap.hpp>
#include <quarry/pool/wrap.hpp>

#include <string_view>

namespace quarry {

using warp_system_heap = warp_aggregated<system_heap>;
using warp_cmalloc = warp_aggregated<cmalloc>;
using warp_cfmalloc = warp_aggregated<cfmalloc>;
using warp_cmmalloc = warp_aggregated<cmmalloc>;
using warp_cfmmalloc = warp_aggregated<cfmmalloc>;
using warp_scatter = warp_aggregated<scatter_alloc>;
/// The upstream in the paper is CUDA's malloc; Vinkler and Havran (2014) suggest a faster one.
using fdgmalloc = arena_per_warp<cfmmalloc>;

/// The names of an allocator.
struct allocator_label {
  std::string_view name;      // in the papers and on the command line
  std::string_view cpp_name;  // the type
  std::string_view summary;
  std::string_view trial = {};  // why it is experimental on a GPU; empty if it is not
};

template <class Allocator>
inline constexpr allocator_label label_of = {};

template <>
inline constexpr allocator_label label_of<slab> = {"Quarry", "quarry::slab",
                                                   "segments of equal slots, drawn by ticket"};
template <>
inline constexpr allocator_label label_of<bump> = {"AtomicMalloc", "quarry::bump",
                                                   "one counter, no free"};
template <>
inline constexpr allocator_label label_of<warp_bump> = {"AtomicMalloc-warp", "quarry::warp_bump",
                                                        "one counter, warp-aggregated, no free"};
template <>
inline constexpr allocator_label label_of<wrap> = {
    "AWMalloc", "quarry::wrap", "a counter that wraps around and overwrites old blocks"};
template <>
inline constexpr allocator_label label_of<warp_wrap> = {"AWMalloc-warp", "quarry::warp_wrap",
                                                        "AWMalloc, warp-aggregated"};
template <>
inline constexpr allocator_label label_of<system_heap> = {
    "CudaMalloc", "quarry::system_heap", "CUDA's device malloc; std::malloc on the CPU backend"};

template <>
inline constexpr allocator_label label_of<cmalloc> = {"CMalloc", "quarry::cmalloc",
                                                      "a ring of chunks, one search offset"};
template <>
inline constexpr allocator_label label_of<cfmalloc> = {"CFMalloc", "quarry::cfmalloc",
                                                       "CMalloc with one-word chunk headers"};
template <>
inline constexpr allocator_label label_of<cmmalloc> = {
    "CMMalloc", "quarry::cmmalloc", "a ring of chunks, one search offset per multiprocessor"};
template <>
inline constexpr allocator_label label_of<cfmmalloc> = {"CFMMalloc", "quarry::cfmmalloc",
                                                        "CMMalloc with one-word chunk headers"};
template <>
inline constexpr allocator_label label_of<warp_system_heap> = {
    "CudaMalloc-warp", "quarry::warp_system_heap", "CudaMalloc, warp-aggregated"};
template <>
inline constexpr allocator_label label_of<warp_cmalloc> = {"CMalloc-warp", "quarry::warp_cmalloc",
                                                           "CMalloc, warp-aggregated"};
template <>
inline constexpr allocator_label label_of<warp_cfmalloc> = {
    "CFMalloc-warp", "quarry::warp_cfmalloc", "CFMalloc, warp-aggregated"};
template <>
inline constexpr allocator_label label_of<warp_cmmalloc> = {
    "CMMalloc-warp", "quarry::warp_cmmalloc", "CMMalloc, warp-aggregated"};
template <>
inline constexpr allocator_label label_of<warp_cfmmalloc> = {
    "CFMMalloc-warp", "quarry::warp_cfmmalloc", "CFMMalloc, warp-aggregated"};
template <>
inline constexpr allocator_label label_of<scatter_alloc> = {
    "ScatterAlloc", "quarry::scatter_alloc", "pages of equal chunks, found by hashing"};
template <>
inline constexpr allocator_label label_of<warp_scatter> = {
    "ScatterAlloc-warp", "quarry::warp_scatter", "ScatterAlloc, warp-aggregated"};
template <>
inline constexpr allocator_label label_of<xmalloc> = {
    "XMalloc", "quarry::xmalloc", "warp-aggregated, FIFOs of free blocks, over CUDA's malloc"};
template <>
inline constexpr allocator_label label_of<fdgmalloc> = {
    "FDGMalloc", "quarry::fdgmalloc", "a warp arena per warp over CFMMalloc, freed as a whole"};

template <class... Allocators>
struct allocator_list {};

using all_allocators =
    allocator_list<slab, bump, warp_bump, wrap, warp_wrap, system_heap, warp_system_heap, cmalloc,
                   warp_cmalloc, cfmalloc, warp_cfmalloc, cmmalloc, warp_cmmalloc, cfmmalloc,
                   warp_cfmmalloc, scatter_alloc, warp_scatter, xmalloc, fdgmalloc>;

/// An entry of the list: a type and its label.
template <class Allocator>
struct named_allocator : allocator_label {
  using type = Allocator;
};

/// Calls visit(named_allocator<A>) for every allocator of the list.
template <class Visit, class... Allocators>
constexpr void for_each_allocator(Visit&& visit, allocator_list<Allocators...>) {
  (visit(named_allocator<Allocators>{label_of<Allocators>}), ...);
}
template <class Visit>
constexpr void for_each_allocator(Visit&& visit) {
  for_each_allocator(visit, all_allocators{});
}

}  // namespace quarry
