// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cost ledger (check/ledger.hpp) of all allocators, for the commands that print it.

#include <quarry/check/ledger.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct allocator_costs {
  std::string_view name;
  std::string_view type;
  cost_ledger ledger;
};

/// Counts the costs of every allocator of the library. Takes milliseconds.
std::vector<allocator_costs> count_costs();

/// Returns one case of the ledger as a table with one row per allocator. A brief table omits loads
/// and stores.
enum class detail_of : std::uint8_t { brief, full };
std::string costs_table(const std::vector<allocator_costs>& all, std::size_t number,
                        detail_of detail);

nlohmann::ordered_json to_json(const allocator_costs& costs);

}  // namespace quarry::tool
