// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A program that runs beside this one, and the pipe from its stdout. It does not outlive the
/// object.

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace quarry::tool {

class child_process {
 public:
  /// `input` is what it reads from stdin; empty: this program's. Throws error where it does not start.
  explicit child_process(const std::vector<std::string>& command, const std::string& input = {});
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  enum class reading : std::uint8_t { line, end, late };

  /// The next line of its output, or why there is none.
  reading read_line(std::string& line, double seconds);

  /// Waits for its end: "" for exit code 0, else "exit code 3", "signal 11".
  std::string end();
  void kill() const;

 private:
  pid_t id_ = 0;
  int output_ = -1;
  std::string unread_;
};

}  // namespace quarry::tool
