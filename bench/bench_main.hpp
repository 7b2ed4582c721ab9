// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the programs here that bring their own main have in common: options, --help, and how they fail.

#include "parse.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace quarry::tool {

/// take(option, value) returns whether there is such an option.
template <class Take>
void read_options(int count, char** words, Take&& take) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word.starts_with("--benchmark")) continue;  // `make bench` gives all programs the same
    const std::string value = i + 1 == count ? "" : words[++i];
    if (!take(word, value))
      throw input_error("unknown option " + std::string(word) + " (see --help)");
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
