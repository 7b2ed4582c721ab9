// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parses JSON that comes from outside of the program.

#include <nlohmann/json.hpp>

#include <string>

namespace quarry::tool {

/// More than any text of this program has. Copies and dump() of nlohmann/json recurse.
inline constexpr int max_json_depth = 64;

/// Returns the value of a JSON text. The result is discarded (is_discarded()) if the text is not
/// JSON, or is nested more deeply than max_json_depth.
inline nlohmann::json parse_json(const std::string& text) {
  bool is_deep = false;
  const auto check = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    is_deep = is_deep || depth > max_json_depth;
    return !is_deep;
  };
  nlohmann::json value = nlohmann::json::parse(text, check, false);
  return is_deep ? nlohmann::json(nlohmann::json::value_t::discarded) : value;
}

}  // namespace quarry::tool
