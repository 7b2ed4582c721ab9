// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A subcommand: adds itself to the command line and, when it is the one, runs.
///
/// Exit codes: 0 all is well, 1 something was checked and found wrong, 2 what was typed makes no
/// sense or this machine can not do it.

#include "common/parse.hpp"
#include "common/text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace quarry::tool {

inline constexpr int all_well = 0;
inline constexpr int found_wrong = 1;
inline constexpr int bad_input = 2;

/// What the chosen subcommand does; set while the command line is read.
using action = std::function<int()>;

void add_bench(CLI::App& app, action& chosen);
void add_list(CLI::App& app, action& chosen);
void add_explore(CLI::App& app, action& chosen);
void add_demo(CLI::App& app, action& chosen);
void add_costs(CLI::App& app, action& chosen);
void add_map(CLI::App& app, action& chosen);
void add_report(CLI::App& app, action& chosen);
void add_kd_tree(CLI::App& app, action& chosen);
void add_graph(CLI::App& app, action& chosen);

/// An option whose text `parse` turns into a value; an input_error names the option.
template <class Value, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Value& value, Parse parse,
                        const std::string& help, const std::string& kind) {
  const auto read = [&value, parse, name](const std::string& text) {
    try {
      value = parse(text);
    } catch (const input_error& e) {
      throw CLI::ValidationError(name, e.what());
    }
  };
  return app.add_option_function<std::string>(name, read, help)->type_name(kind);
}

/// An option that is one of a few words.
inline CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                               const std::vector<std::string>& words, const std::string& help) {
  const auto parse = [words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) == words.end())
      throw input_error("'" + text + "' is not one of " + joined(words));
    return text;
  };
  return add_parsed(app, name, value, parse, help, joined(words, "|"));
}

inline CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& value,
                              const std::string& help, std::uint64_t least = 1,
                              std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  const auto parse = [least, most](const std::string& text) {
    return parse_count(text, least, most);
  };
  return add_parsed(app, name, value, parse, help, "N");
}

}  // namespace quarry::tool
