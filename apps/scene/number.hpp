// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Real numbers in scene files.

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace quarry::apps {

/// The number that the whole text denotes; nothing if there is none, or if it is too large. A
/// leading + is accepted, and a number below the smallest double is 0.
inline std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [read, problem] = std::from_chars(text.data(), end, value);
  if (read != end || text.empty()) return {};
  if (problem == std::errc()) return value;
  // from_chars does not say in which direction the number is out of range.
  const std::size_t exponent = text.find_first_of("eE");
  const bool tiny = exponent == std::string_view::npos ? text.find('.') != std::string_view::npos
                                                       : text.substr(exponent + 1).starts_with('-');
  if (problem == std::errc::result_out_of_range && tiny) return 0.0;
  return {};
}

/// The nearest float; an infinity if there is none.
inline float to_float(double value) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr double most = std::numeric_limits<float>::max();
  return value > most ? infinity : value < -most ? -infinity : static_cast<float>(value);
}

}  // namespace quarry::apps
