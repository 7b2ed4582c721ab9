// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What people type: sizes, counts, names. Whatever is wrong is an input_error, one line that says
/// what was typed and what would have been right.

#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

class input_error : public error {
 public:
  using error::error;
};

/// The parts of a list with commas; some may be empty.
std::vector<std::string> split(const std::string& list);

/// A whole decimal number in [least, most].
std::uint64_t parse_count(std::string_view text, std::uint64_t least = 0,
                          std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// "64", "64B", "4K", "4KiB", "1.5G": units are powers of 1024, in either case.
bytes parse_size(std::string_view text);

struct size_range {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};
/// "64" or "16-1K".
size_range parse_size_range(std::string_view text);

/// The name that `text` stands for when letter case does not matter; empty where there is none.
std::string_view find_name(std::string_view text, std::span<const std::string_view> names);

/// The name that takes the fewest changes of a letter to reach, if that is a plausible slip.
std::string_view nearest_name(std::string_view text, std::span<const std::string_view> names);

}  // namespace quarry::tool
