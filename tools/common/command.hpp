// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A subcommand of `quarry`: adds its options to the command line and, if the user chose it, runs.
///
/// Exit codes: 0 success; 1 a check failed, or the program itself; 2 the command line is invalid,
/// or this host cannot do what was asked.

#include "common/parse.hpp"
#include "common/text.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace quarry::tool {

inline constexpr int exit_success = 0;
inline constexpr int exit_check_failed = 1;
inline constexpr int exit_bad_input = 2;

/// What the chosen subcommand does. The subcommand sets the action while the line is parsed.
using action = std::function<int()>;

/// Refers to a command of CLI11, which parses the command line, and adds options to it. The header
/// of CLI11 takes longer to compile than most commands, so command.cpp alone includes it.
class command_line {
 public:
  explicit command_line(CLI::App& app) : app_(&app) {}

  command_line add_subcommand(const std::string& name, const std::string& help) const;
  /// The user must give one subcommand.
  void require_subcommand() const;
  /// Returns the name of the command and the options in effect, as texts: a value that is given, or
  /// the default. Values that have no text in add_parsed() appear as the user typed them.
  std::vector<std::pair<std::string, std::string>> arguments() const;
  /// Adds a text below the options in the help.
  void footer(const std::string& text) const;
  /// Calls `parsed` if the user gave this command.
  void callback(std::function<void()> parsed) const;

  void add_flag(const std::string& name, bool& value, const std::string& help) const;
  void add_option(const std::string& name, std::string& value, const std::string& help,
                  const std::string& type_name = "TEXT") const;
  /// Adds arguments without a name that the user must give.
  void add_required(const std::string& name, std::string& value, const std::string& help) const;
  void add_required(const std::string& name, std::vector<std::string>& values,
                    const std::string& help) const;
  /// Calls `read` with the text of the option. An input_error that `read` throws becomes an error
  /// that names the option. `show` returns the value in effect for arguments(); it may be empty.
  void add_reader(const std::string& name, std::function<void(const std::string&)> read,
                  const std::function<std::string()>& show, const std::string& help,
                  const std::string& type_name) const;

 private:
  friend void add_choice(const command_line& command, const std::string& name, std::string& value,
                         const std::vector<std::string>& words, const std::string& help);
  CLI::App* app_;
};

void add_bench(const command_line& app, action& chosen);
void add_list(const command_line& app, action& chosen);
void add_explore(const command_line& app, action& chosen);
void add_demo(const command_line& app, action& chosen);
void add_costs(const command_line& app, action& chosen);
void add_map(const command_line& app, action& chosen);
void add_report(const command_line& app, action& chosen);
void add_kd_tree(const command_line& app, action& chosen);
void add_graph(const command_line& app, action& chosen);

/// Adds an option whose text `parse` converts to a value.
template <class Value, class Parse>
void add_parsed(const command_line& command, const std::string& name, Value& value, Parse parse,
                const std::string& help, const std::string& type_name) {
  std::function<std::string()> show;
  if constexpr (std::is_arithmetic_v<Value>) show = [&value] { return shortest_text(value); };
  command.add_reader(
      name, [&value, parse](const std::string& text) { value = parse(text); }, show, help,
      type_name);
}

/// Adds an option whose value is one of `words`.
void add_choice(const command_line& command, const std::string& name, std::string& value,
                const std::vector<std::string>& words, const std::string& help);

/// Adds an option whose value is a whole number in [min, max]. See parse_count() for the reason not
/// to use CLI::Range.
void add_count(const command_line& command, const std::string& name, std::uint64_t& value,
               const std::string& help, std::uint64_t min = 1,
               std::uint64_t max = std::numeric_limits<std::uint64_t>::max());

/// Parses the command line of the program, runs the chosen subcommand and returns its exit code.
/// Throws input_error if the line is invalid, with a suggestion if possible. `add_commands` adds
/// the subcommands.
struct program_text {
  const char* name;
  const char* about;
  const char* footer;
  std::string version;
};
int run_command_line(const program_text& program, int argc, char** argv,
                     const std::function<void(const command_line&, action&)>& add_commands);

}  // namespace quarry::tool
