// SPDX-License-Identifier: Apache-2.0
/// The cost ledger, counted for every allocator of the library.

#include "costs/costs.hpp"

#include <quarry/check/ledger.hpp>
#include <quarry/heap/named.hpp>

#include <future>

namespace quarry::tool {

std::vector<allocator_costs> count_costs() {
  std::vector<allocator_costs> all;
  for_each_allocator([&](auto entry) {
    // Each allocator is counted in a new thread, where the lanes' logical clock starts at 0, so
    // that its counts do not depend on the allocators before it.
    using allocator_type = typename decltype(entry)::type;
    auto costs = std::async(std::launch::async, [] { return measure_costs<allocator_type>(); });
    all.push_back({entry.name, entry.cpp_name, costs.get()});
  });
  return all;
}

}  // namespace quarry::tool
