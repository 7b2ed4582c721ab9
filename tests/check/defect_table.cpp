// SPDX-License-Identifier: Apache-2.0
// Prints the table of docs/exploration.md: the number of schedules until the explorer detects each
// published defect.
//   defect_table [SCHEDULES [EXPLORATIONS]]
#include "defects.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace quarry;

std::uint64_t number(int argc, char** argv, int which, std::uint64_t otherwise) {
  return argc > which ? std::strtoull(argv[which], nullptr, 10) : otherwise;
}

template <class A>
void print_row(const defect<A>& d, std::uint64_t schedules, std::uint64_t explorations) {
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

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t schedules = number(argc, argv, 1, 20'000);
  const std::uint64_t explorations = number(argc, argv, 2, 50);
  std::puts(
      "| defect | failing schedules | until the first: median | worst | operations left | "
      "schedules/s |");
  std::puts("| --- | --- | --- | --- | --- | --- |");
  defects::for_each(
      [&](const auto& d) { print_row(d, schedules, std::max<std::uint64_t>(explorations, 1)); });
}
