// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a call costs, whatever the machine (check/ledger.hpp), for the commands that print it.

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

/// Counted now, for every allocator of the library; takes milliseconds.
std::vector<allocator_costs> count_costs();

/// One of the ledger's cases as a table, a line each allocator. A brief one leaves out loads and
/// stores.
enum class detail_of : std::uint8_t { brief, full };
std::string costs_table(const std::vector<allocator_costs>& all, std::size_t number,
                        detail_of detail);

nlohmann::ordered_json to_json(const allocator_costs& costs);

}  // namespace quarry::tool
