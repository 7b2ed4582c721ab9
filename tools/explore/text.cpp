// SPDX-License-Identifier: Apache-2.0
/// The result of an exploration as text.

#include "common/text.hpp"
#include "explore/run.hpp"

#include <fmt/format.h>

namespace quarry::tool {
namespace {

std::string indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += fmt::format("    {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string replay_command(std::string_view name, std::string_view token) {
  return fmt::format("quarry explore {} --replay {}", name, token);
}

std::string outcome_text(std::string_view name, const exploration& done) {
  const auto figure = [](std::uint64_t n) { return rounded(static_cast<double>(n)); };
  return fmt::format(
      "{:<18}  {}  {} schedules in {:.1f} s: {} steps, {} mallocs, {} failed mallocs, {} frees\n",
      name, done.first ? "FAILED" : "passed", grouped(done.schedules), done.seconds,
      figure(done.steps), figure(done.served), figure(done.failed), figure(done.freed));
}

std::string failure_text(std::string_view name, const exploration_failure& failure) {
  std::string out = fmt::format("  seed {}: {}\n", failure.seed, failure.text);
  out += fmt::format("  smallest script found, {} of {} operations:\n{}", failure.small_operations,
                     failure.operations, indented(failure.small_script));
  if (failure.small_text != failure.text)
    out += fmt::format("  failure of this script: {}\n", failure.small_text);
  out += fmt::format("  trace:          {}\n", replay_command(name, failure.small_token));
  if (failure.token != failure.small_token)
    out += fmt::format("  unreduced trace: {}\n", replay_command(name, failure.token));
  return out;
}

}  // namespace quarry::tool
