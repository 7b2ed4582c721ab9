// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The allocators by the names of the papers: one list for the command line, the tests and the tables.
/// A new allocator gets a label and a place in `all_allocators`; everything else follows from that.
/// A name with -warp is the same allocator asked once a warp: what asks for a whole warp at a time by itself
/// (XMalloc, FDGMalloc) has one name only.

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
/// Over CUDA's malloc in the paper; Vinkler and Havran (2014) suggest a faster upstream.
using fdgmalloc = arena_per_warp<cfmmalloc>;

/// What people call an allocator.
struct allocator_label {
  std::string_view name;      // as in the papers, and on the command line
  std::string_view cpp_name;  // the type
  std::string_view summary;
  std::string_view trial = {};  // why it is not to be relied on yet, on a GPU; empty: it is
};

template <class Allocator>
inline constexpr allocator_label label_of = {};

template <>
inline constexpr allocator_label label_of<slab> = {
    "Quarry", "quarry::slab", "slots of a class side by side, handed out by ticket"};
template <>
inline constexpr allocator_label label_of<bump> = {"AtomicMalloc", "quarry::bump",
                                                   "one counter, no free"};
template <>
inline constexpr allocator_label label_of<warp_bump> = {"AtomicMalloc-warp", "quarry::warp_bump",
                                                        "one counter, asked once a warp, no free"};
template <>
inline constexpr allocator_label label_of<wrap> = {"AWMalloc", "quarry::wrap",
                                                   "a counter that wraps: overwrites old blocks"};
template <>
inline constexpr allocator_label label_of<warp_wrap> = {"AWMalloc-warp", "quarry::warp_wrap",
                                                        "the same, asked once a warp"};
template <>
inline constexpr allocator_label label_of<system_heap> = {
    "CudaMalloc", "quarry::system_heap", "CUDA's device malloc; std::malloc on the CPU"};

template <>
inline constexpr allocator_label label_of<cmalloc> = {"CMalloc", "quarry::cmalloc",
                                                      "a ring of chunks, searched from one offset"};
template <>
inline constexpr allocator_label label_of<cfmalloc> = {"CFMalloc", "quarry::cfmalloc",
                                                       "the same, a header in one word"};
template <>
inline constexpr allocator_label label_of<cmmalloc> = {
    "CMMalloc", "quarry::cmmalloc", "a ring of chunks, an offset per multiprocessor"};
template <>
inline constexpr allocator_label label_of<cfmmalloc> = {"CFMMalloc", "quarry::cfmmalloc",
                                                        "the same, a header in one word"};
template <>
inline constexpr allocator_label label_of<warp_system_heap> = {
    "CudaMalloc-warp", "quarry::warp_system_heap", "the same, asked once a warp"};
template <>
inline constexpr allocator_label label_of<warp_cmalloc> = {"CMalloc-warp", "quarry::warp_cmalloc",
                                                           "CMalloc, asked once a warp"};
template <>
inline constexpr allocator_label label_of<warp_cfmalloc> = {
    "CFMalloc-warp", "quarry::warp_cfmalloc", "CFMalloc, asked once a warp"};
template <>
inline constexpr allocator_label label_of<warp_cmmalloc> = {
    "CMMalloc-warp", "quarry::warp_cmmalloc", "CMMalloc, asked once a warp"};
template <>
inline constexpr allocator_label label_of<warp_cfmmalloc> = {
    "CFMMalloc-warp", "quarry::warp_cfmmalloc", "CFMMalloc, asked once a warp"};
template <>
inline constexpr allocator_label label_of<scatter_alloc> = {
    "ScatterAlloc", "quarry::scatter_alloc", "pages of equal chunks, found by hashing"};
template <>
inline constexpr allocator_label label_of<warp_scatter> = {
    "ScatterAlloc-warp", "quarry::warp_scatter", "ScatterAlloc, asked once a warp"};
template <>
inline constexpr allocator_label label_of<xmalloc> = {
    "XMalloc", "quarry::xmalloc", "asked once a warp, FIFOs of free blocks, over CUDA's malloc"};
template <>
inline constexpr allocator_label label_of<fdgmalloc> = {
    "FDGMalloc", "quarry::fdgmalloc", "a heap per warp over CFMMalloc, freed as a whole"};

template <class... Allocators>
struct allocator_list {};

using all_allocators =
    allocator_list<slab, bump, warp_bump, wrap, warp_wrap, system_heap, warp_system_heap, cmalloc,
                   warp_cmalloc, cfmalloc, warp_cfmalloc, cmmalloc, warp_cmmalloc, cfmmalloc,
                   warp_cfmmalloc, scatter_alloc, warp_scatter, xmalloc, fdgmalloc>;

/// An entry of the list.
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
