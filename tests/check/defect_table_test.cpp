// SPDX-License-Identifier: Apache-2.0
// Prints the table of docs/exploration.md: the number of schedules until the explorer detects each
// published defect. The test takes minutes and is disabled:
//   check_test --gtest_also_run_disabled_tests --gtest_filter='DefectTable.*'
#include "defects.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace quarry::defect_table_test {
namespace {

constexpr std::uint64_t schedules = 20'000;
constexpr std::uint64_t explorations = 50;

template <class A>
void print_row(const defect<A>& d) {
  exploration_options options = d.options;
  options.minimise = false;
  options.schedules = schedules;
  options.stop_at_failure = false;
  const exploration rate = allocator_explorer<A>(options).run();

  options.schedules = 1'000'000;
  options.stop_at_failure = true;
  std::vector<std::uint64_t> until;
  std::uint64_t smallest = ~std::uint64_t{0};
  for (std::uint64_t i = 0; i < explorations; ++i) {
    options.first_seed = 1 + i * options.schedules;
    options.minimise = i < 5;
    const exploration found = allocator_explorer<A>(options).run();
    until.push_back(found.schedules);
    if (found.first && options.minimise)
      smallest = std::min(smallest, found.first->small_operations);
  }
  std::sort(until.begin(), until.end());
  std::printf("| %s | %llu / %llu | %llu | %llu | %llu | %.0f |\n", d.name,
              static_cast<unsigned long long>(rate.failures),
              static_cast<unsigned long long>(rate.schedules),
              static_cast<unsigned long long>(until[until.size() / 2]),
              static_cast<unsigned long long>(until.back()),
              static_cast<unsigned long long>(smallest), rate.per_second());
  std::fflush(stdout);
}

TEST(DefectTable, DISABLED_Print) {
  std::puts(
      "| defect | failing schedules | until the first: median | worst | operations left | "
      "schedules/s |");
  std::puts("| --- | --- | --- | --- | --- | --- |");
  defects::for_each([&](const auto& d) { print_row(d); });
}

}  // namespace
}  // namespace quarry::defect_table_test
