// SPDX-License-Identifier: Apache-2.0
#include "common/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quarry::tool {

std::string table::text() const {
  std::vector<std::size_t> width(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    width[c] = columns_[c].title.size();
    for (const auto& row : rows_) width[c] = std::max(width[c], row[c].size());
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) text += "  ";
      text += columns_[c].align == left ? fmt::format("{:<{}}", cell(c), width[c])
                                        : fmt::format("{:>{}}", cell(c), width[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](std::size_t c) { return columns_[c].title; });
  line([&](std::size_t c) { return std::string(width[c], '-'); });
  for (const auto& row : rows_) line([&](std::size_t c) { return row[c]; });
  return out;
}

std::string grouped(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string rounded(double n) {
  constexpr const char* units[] = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  for (; n >= 999.5 && unit < 4; ++unit) n /= 1000;
  const int decimals = unit == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", n, decimals, units[unit]);
}

std::string shortest_text(double n) { return fmt::format("{}", n); }
std::string shortest_text(std::uint64_t n) { return fmt::format("{}", n); }

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace quarry::tool
