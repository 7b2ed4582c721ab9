// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The defects of the published algorithms, each in isolation, and the exploration that detects it.
/// published_test asserts that each is detected; defect_table measures after how many schedules.

#include <mutants/published_awmalloc.hpp>
#include <mutants/published_cfmalloc.hpp>
#include <mutants/published_cmalloc.hpp>
#include <quarry/check/explore_allocator.hpp>

#include <cstdint>

namespace quarry {

template <allocator A>
struct defect {
  const char* name;
  const char* text;  // a part of the explorer's message
  // The limit on schedules: at least eight times the maximum that 50 explorations needed.
  std::uint64_t allowed;
  exploration_options options{};
};

namespace defects {

using namespace mutants;

// Lanes run one after the other.
inline constexpr exploration_options sequential = {.bounds = {.blocks = 4},
                                                   .strategy = exploration_strategy::sequential};
// Defect C needs a lane that is overtaken twice during its walk, and then continues at the start of
// a new chunk: long scripts and random switches.
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
    {"AWMalloc: a request larger than the pool", "the size can not be served", 200};
inline constexpr defect<only_a> a = {"A, CMalloc: the end marker is merged away", "leak", 2'000};
inline constexpr defect<only_a> a_one_lane = {
    "A, the same with one lane", "leak", 4'000, {.bounds = {.lanes = 1}}};
inline constexpr defect<only_b> b = {"B, CMalloc: user data read as a header", "", 10'000};
inline constexpr defect<only_b_fused> b_fused = {"B, CFMalloc: user data read as a header", "",
                                                 10'000};
inline constexpr defect<only_c> c = {"C, CMalloc: free before next is written",
                                     "which overlaps block #", 400'000, long_scripts};
inline constexpr defect<only_d> d = {"D, CMMalloc: stale offsets, sequential lanes", "", 10'000,
                                     sequential};
inline constexpr defect<only_d_fused> d_fused = {"D, CFMMalloc: stale offsets, sequential lanes",
                                                 "", 10'000, sequential};
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
