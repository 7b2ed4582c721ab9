// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the programs here that bring their own main have in common: options, --help, and how they fail.

#include "common/parse.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// An option that takes a value, and what becomes of it.
struct bench_option {
  std::string_view name;
  std::function<void(const std::string&)> take;
};
inline bench_option count_option(std::string_view name, std::uint64_t& into, std::uint64_t least,
                                 std::uint64_t most) {
  return {name, [&into, least, most](const std::string& value) {
            into = parse_count(value, least, most);
          }};
}
inline bench_option size_option(std::string_view name, std::uint64_t& into) {
  return {name, [&into](const std::string& value) { into = parse_size(value).value(); }};
}

/// One of two words.
inline bench_option choice_option(std::string_view name, bool& into, std::string_view no,
                                  std::string_view yes) {
  return {name, [&into, name, no, yes](const std::string& value) {
            if (value != no && value != yes)
              throw input_error(std::string(name) + ": " + std::string(no) + " or " +
                                std::string(yes) + ", not \"" + value + "\"");
            into = value == yes;
          }};
}

inline void read_options(int count, char** words, const std::vector<bench_option>& options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word.starts_with("--benchmark")) continue;  // `make bench` gives all programs the same
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const bench_option& o) { return o.name == word; });
    if (option == options.end())
      throw input_error("unknown option " + std::string(word) + " (see --help)");
    option->take(i + 1 == count ? "" : words[++i]);
  }
}

/// Returns what `go` returns; 2 if it did not like its input, 1 if it failed.
template <class Go>
int bench_main(const char* name, std::string_view usage, int count, char** words, Go&& go) {
  if (count == 2 && std::string_view(words[1]) == "--help") {
    std::fwrite(usage.data(), 1, usage.size(), stdout);
    return 0;
  }
  try {
    return go();
  } catch (const input_error& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 1;
  }
}

}  // namespace quarry::tool
