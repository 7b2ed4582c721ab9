// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parsers for values that users type: sizes, counts, seconds, names. Each parser throws
/// input_error with one line that names the value and what would be right.
///
/// CLI11 parses the command line. Its own conversions are not used for numbers, since those of
/// CLI11 2.1 (Debian 12) accept too much:
///
///   CLI::AsSizeValue   takes no fractions ("1.5MiB"), and its errors name a C++ type
///   CLI::Range         reads "" as 0, "010" as 8, a number above 2^64 as 2^64 - 1, and passes NaN
///   CLI::IsMember      suggests no name that is spelled similarly

#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// What the user typed is invalid. The program ends with exit code 2.
class input_error : public error {
 public:
  using error::error;
};

/// Splits a list at its commas. Parts may be empty.
std::vector<std::string> split(const std::string& list);

/// Parses a decimal whole number in [min, max].
std::uint64_t parse_count(std::string_view text, std::uint64_t min = 0,
                          std::uint64_t max = std::numeric_limits<std::uint64_t>::max());

/// Parses a size such as "64", "64B", "4K", "4KiB", "1.5G". Units are powers of 1024, in upper or
/// lower case.
bytes parse_size(std::string_view text);

/// Parses a finite number in [min, max].
double parse_real(const std::string& text, double min, double max);

/// Parses a time in seconds: a finite number above 0, at most a day.
double parse_seconds(const std::string& text);

/// Block sizes from `least` to `most` bytes, both included.
struct size_range {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};
/// Parses one size, "64", or a range, "16-1K".
size_range parse_size_range(std::string_view text);

/// Returns the name that equals `text` apart from upper and lower case; empty if there is none.
std::string_view find_name(std::string_view text, std::span<const std::string_view> names);

/// Returns the name with the smallest edit distance to `text`, as a suggestion; empty if no name is
/// similar.
std::string_view nearest_name(std::string_view text, std::span<const std::string_view> names);

}  // namespace quarry::tool
