// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Text output of the commands: tables with aligned columns, and numbers in readable form.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// A table as plain text. Each column is as wide as its widest cell; two spaces separate columns.
class table {
 public:
  enum class side : std::uint8_t { left, right };
  struct column {
    std::string title;
    side align = side::left;
  };

  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

inline constexpr table::side left = table::side::left;
inline constexpr table::side right = table::side::right;

/// Groups digits by thousands: 1048576 becomes "1,048,576".
std::string grouped(std::uint64_t n);

/// Rounds to three significant digits with an SI prefix: "21.4 M", "950 k", "12".
std::string rounded(double n);

/// Returns the shortest text from which the number can be read back: "0.5", "1e+20".
std::string shortest_text(double n);
std::string shortest_text(std::uint64_t n);

/// Joins texts: "one", "two" becomes "one, two".
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");

}  // namespace quarry::tool
