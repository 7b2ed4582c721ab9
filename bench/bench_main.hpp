// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Options, --help and exit codes for the programs of this folder that have their own main. nvcc
/// compiles these programs too, so that they read their few options without CLI11.

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

/// An option with a value, and the function that stores the value.
struct bench_option {
  std::string_view name;
  std::function<void(const std::string&)> store;
};
inline bench_option count_option(std::string_view name, std::uint64_t& into, std::uint64_t min,
                                 std::uint64_t max) {
  return {name,
          [&into, min, max](const std::string& value) { into = parse_count(value, min, max); }};
}
inline bench_option size_option(std::string_view name, std::uint64_t& into) {
  return {name, [&into](const std::string& value) { into = parse_size(value).value(); }};
}

/// An option whose value is one of two words.
inline bench_option choice_option(std::string_view name, bool& into, std::string_view no,
                                  std::string_view yes) {
  return {name, [&into, name, no, yes](const std::string& value) {
            if (value != no && value != yes)
              throw input_error(std::string(name) + ": " + value + " not in {" + std::string(no) +
                                "," + std::string(yes) + "}");
            into = value == yes;
          }};
}

inline void read_options(int count, char** words, const std::vector<bench_option>& options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word.starts_with("--benchmark"))
      continue;  // `make bench` passes the same options to all programs
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const bench_option& o) { return o.name == word; });
    if (option == options.end())
      throw input_error("unknown option " + std::string(word) + " (see --help)");
    option->store(i + 1 == count ? "" : words[++i]);
  }
}

/// Runs `run` and returns its exit code. Returns 2 for an input_error, 1 for any other exception.
template <class Run>
int bench_main(const char* name, std::string_view usage, int count, char** words, Run&& run) {
  if (count == 2 && std::string_view(words[1]) == "--help") {
    std::fwrite(usage.data(), 1, usage.size(), stdout);
    return 0;
  }
  try {
    return run();
  } catch (const input_error& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 1;
  }
}

}  // namespace quarry::tool
