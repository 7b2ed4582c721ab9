// SPDX-License-Identifier: Apache-2.0
/// A slab with one defect (slab_mutants.py): the explorer must find it. Compiled once for each.

#include "check/effort.hpp"

#include <mutant.hpp>

#include <quarry/check/explore_allocator.hpp>
#include <quarry/pool/slab/slab.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>

namespace quarry {
namespace {

TEST(SlabMutant, IsFound) {
  if (effort_divisor != 1) GTEST_SKIP() << "too rare for a slow build";
  const exploration found = expect_failure<basic_slab<slab_tuning{.few_slots = mutant_few_slots}>>(
      {.bounds = {.lanes = 40, .blocks = 3, .operations = 12},
       .pool_bytes = 4096,
       .schedules = mutant_schedules,
       .step_limit = 400'000,
       .refill_one_in = 4,
       .minimise = false},
      mutant_says);
  if (found.first)
    std::printf("%s: after %llu schedules: %s\n", mutant_name,
                static_cast<unsigned long long>(found.schedules), found.first->text.c_str());
}

}  // namespace
}  // namespace quarry
