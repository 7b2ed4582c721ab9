// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A subcommand of `quarry`: adds its options to the command line and, if the user chose it, runs.
///
/// Exit codes: 0 success; 1 a check failed, or the program itself; 2 the command line is invalid,
/// or this host cannot do what was asked.

#include "common/parse.hpp"
#include "common/text.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace quarry::tool {

inline constexpr int exit_success = 0;
inline constexpr int exit_check_failed = 1;
inline constexpr int exit_bad_input = 2;

/// What the chosen subcommand does. The subcommand sets the action while CLI11 parses.
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

/// Adds an option whose text `parse` converts to a value. An input_error that `parse` throws
/// becomes an error of CLI11 that names the option.
template <class Value, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Value& value, Parse parse,
                        const std::string& help, const std::string& type_name) {
  const auto read = [&value, parse, name](const std::string& text) {
    try {
      value = parse(text);
    } catch (const input_error& e) {
      throw CLI::ValidationError(name, e.what());
    }
  };
  return app.add_option_function<std::string>(name, read, help)->type_name(type_name);
}

/// Adds an option whose value is one of `words`.
inline CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                               const std::vector<std::string>& words, const std::string& help) {
  // An empty description: the help shows the words once, as the type name.
  return app.add_option(name, value, help)
      ->check(CLI::IsMember(words).description(""))
      ->type_name(joined(words, "|"));
}

/// Adds an option whose value is a whole number in [min, max]. See parse_count() for the reason not
/// to use CLI::Range.
inline CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& value,
                              const std::string& help, std::uint64_t min = 1,
                              std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) {
  const auto parse = [min, max](const std::string& text) { return parse_count(text, min, max); };
  return add_parsed(app, name, value, parse, help, "N");
}

}  // namespace quarry::tool
