// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The defects of the published algorithms, each alone, and the exploration that detects it.
/// published_test asserts that they are found, defect_table measures how soon.

#include <mutants/published_awmalloc.hpp>
#include <mutants/published_cfmalloc.hpp>
#include <mutants/published_cmalloc.hpp>
#include <quarry/check/explore_allocator.hpp>

#include <cstdint>

namespace quarry {

template <allocator A>
struct defect {
  const char* name;
  const char* text;  // part of what the explorer says
  std::uint64_t
      allowed;  // schedules; eight times what the slowest of 50 explorations needed, or more
  exploration_options options{};
};

namespace defects {

using namespace mutants;

// Lanes run one after the other.
inline constexpr exploration_options in_turn = {.bounds = {.blocks = 4},
                                                .strategy = exploration_strategy::sequential};
// C wants a walker that stands, twice overtaken, where a chunk begins again: long scripts, random
// switching.
inline constexpr exploration_options long_scripts = {
    .bounds = {.operations = 8}, .pool_bytes = 2048, .strategy = exploration_strategy::random};

using only_a = published_cmalloc<cmalloc_repairs{
    .out_of_band = true, .next_before_flag = true, .bounded = true}>;
using only_b = published_cmalloc<cmalloc_repairs{
    .marker_used = true, .next_before_flag = true, .bounded = true}>;
using only_b_fused = published_cfmalloc<cfmalloc_repairs{.marker_used = true, .bounded = true}>;
using only_c =
    published_cmalloc<cmalloc_repairs{.marker_used = true, .out_of_band = true, .bounded = true}>;
using only_d = published_cmalloc<
    cmalloc_repairs{.marker_used = true, .next_before_flag = true, .bounded = true}, 4>;
using only_d_fused = published_cfmalloc<cfmalloc_repairs{.marker_used = true, .bounded = true}, 4>;
using only_e = published_cmalloc<cmalloc_repairs{
    .marker_used = true, .out_of_band = true, .next_before_flag = true}>;

inline constexpr defect<published_awmalloc<awmalloc_repairs{.rejects_oversize = true}>> unreserved =
    {"AWMalloc: memory never reserved", "which overlaps block #", 10'000};
inline constexpr defect<published_awmalloc<awmalloc_repairs{.adds_again_inside = true}>> too_large =
    {"AWMalloc: a request larger than the pool", "so much can not be served", 200};
inline constexpr defect<only_a> a = {"A, CMalloc: the end marker is swallowed", "lost memory",
                                     2'000};
inline constexpr defect<only_a> a_one_lane = {
    "A, the same with one lane", "lost memory", 4'000, {.bounds = {.lanes = 1}}};
inline constexpr defect<only_b> b = {"B, CMalloc: user data read as a header", "", 10'000};
inline constexpr defect<only_b_fused> b_fused = {"B, CFMalloc: user data read as a header", "",
                                                 10'000};
inline constexpr defect<only_c> c = {"C, CMalloc: free before next is written",
                                     "which overlaps block #", 400'000, long_scripts};
inline constexpr defect<only_d> d = {"D, CMMalloc: stale offsets, lanes in turn", "", 10'000,
                                     in_turn};
inline constexpr defect<only_d_fused> d_fused = {"D, CFMMalloc: stale offsets, lanes in turn", "",
                                                 10'000, in_turn};
inline constexpr defect<only_e> e = {"E, CMalloc: no end when the pool is full", "step limit", 200};
inline constexpr defect<published_cmalloc<>> cmalloc_as_printed = {"CMalloc as printed", "", 200};
inline constexpr defect<published_cfmalloc<>> cfmalloc_as_printed = {"CFMalloc as printed", "",
                                                                     200};

template <class Visit>
void for_each(const Visit& visit) {
  visit(unreserved);
  visit(too_large);
  visit(a);
  visit(a_one_lane);
  visit(b);
  visit(b_fused);
  visit(c);
  visit(d);
  visit(d_fused);
  visit(e);
  visit(cmalloc_as_printed);
  visit(cfmalloc_as_printed);
}

}  // namespace defects
}  // namespace quarry
