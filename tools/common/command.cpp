// SPDX-License-Identifier: Apache-2.0
#include "common/command.hpp"

#include "common/text.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace quarry::tool {

command_line command_line::add_subcommand(const std::string& name, const std::string& help) const {
  return command_line(*app_->add_subcommand(name, help));
}
void command_line::require_subcommand() const { app_->require_subcommand(1, 1); }
std::vector<std::pair<std::string, std::string>> command_line::arguments() const {
  std::vector<std::pair<std::string, std::string>> all = {{"the command", app_->get_name()}};
  for (CLI::Option* option : app_->get_options({})) {
    if (option == app_->get_help_ptr()) continue;
    option->capture_default_str();  // calls the function that shows the value in effect
    const std::string shown = option->get_default_str();
    all.emplace_back(option->get_name(), shown.empty() ? joined(option->results(), ",") : shown);
  }
  return all;
}
void command_line::footer(const std::string& text) const { app_->footer(text); }
void command_line::callback(std::function<void()> parsed) const {
  app_->callback(std::move(parsed));
}

void command_line::add_flag(const std::string& name, bool& value, const std::string& help) const {
  // "!--no-check" sets the value to false.
  const bool negated = name.starts_with('!');
  app_->add_flag(name, value, help)->default_function([&value, negated] {
    return value != negated ? "true" : "false";
  });
}

void command_line::add_option(const std::string& name, std::string& value, const std::string& help,
                              const std::string& type_name) const {
  app_->add_option(name, value, help)->type_name(type_name);
}

void command_line::add_required(const std::string& name, std::string& value,
                                const std::string& help) const {
  app_->add_option(name, value, help)->required()->type_name("");
}

void command_line::add_required(const std::string& name, std::vector<std::string>& values,
                                const std::string& help) const {
  app_->add_option(name, values, help)->required()->type_name("");
}

void command_line::add_reader(const std::string& name, std::function<void(const std::string&)> read,
                              const std::function<std::string()>& show, const std::string& help,
                              const std::string& type_name) const {
  const auto checked = [read = std::move(read), name](const std::string& text) {
    try {
      read(text);
    } catch (const input_error& e) {
      throw CLI::ValidationError(name, e.what());
    }
  };
  app_->add_option_function<std::string>(name, checked, help)
      ->type_name(type_name)
      ->default_function(show);
}

void add_choice(const command_line& command, const std::string& name, std::string& value,
                const std::vector<std::string>& words, const std::string& help) {
  // An empty description: the help shows the words once, as the type name.
  command.app_->add_option(name, value, help)
      ->check(CLI::IsMember(words).description(""))
      ->type_name(joined(words, "|"));
}

void add_count(const command_line& command, const std::string& name, std::uint64_t& value,
               const std::string& help, std::uint64_t min, std::uint64_t max) {
  const auto parse = [min, max](const std::string& text) { return parse_count(text, min, max); };
  add_parsed(command, name, value, parse, help, "N");
}

namespace {

/// Returns a one-line error message for an invalid command line, with a suggestion if possible.
std::string message_for(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  const std::string& program = app.get_name();
  const auto chosen = app.get_subcommands();
  if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view nearest = nearest_name(argv[1], views);
    return fmt::format("no command '{}'{}; the commands are {}", argv[1],
                       nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                       fmt::join(names, ", "));
  }
  std::string what = e.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr)
    what = "unexpected:" + what.substr(what.find(':') + 1);
  return fmt::format("{} (see {}{} --help)", what, program,
                     chosen.empty() ? "" : " " + chosen[0]->get_name());
}

}  // namespace

int run_command_line(const program_text& program, int argc, char** argv,
                     const std::function<void(const command_line&, action&)>& add_commands) {
  CLI::App app(program.about, program.name);
  app.set_version_flag("--version", program.version,
                       "Print the version and the backends of this program");
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(program.footer);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(32);
  action chosen;
  add_commands(command_line(app), chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    throw input_error(message_for(app, e, argc, argv));
  }
  if (chosen) return chosen();
  fmt::print("{}", app.help());
  return exit_success;
}

}  // namespace quarry::tool
