// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Tables and figures for people.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// Columns as wide as their widest cell, two spaces between them.
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

/// 1048576: "1,048,576".
std::string grouped(std::uint64_t n);

/// Three digits that matter: "21.4 M", "950 k", "12".
std::string rounded(double n);

/// "one", "two" -> "one, two".
std::string joined(const std::vector<std::string>& parts, std::string_view between = ", ");

}  // namespace quarry::tool
