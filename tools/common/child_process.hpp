// SPDX-License-Identifier: Apache-2.0
#pragma once
/// child_process: a program that this program starts, and a pipe that carries the child's stdout.
/// The destructor kills a child that still runs, and reaps it.

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace quarry::tool {

class child_process {
 public:
  /// Starts `command`. The child reads `input` from stdin; if `input` is empty, the child inherits
  /// the stdin of this process. Throws error if the program cannot be started.
  explicit child_process(const std::vector<std::string>& command, const std::string& input = {});
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  enum class read_status : std::uint8_t { line, end_of_output, timed_out };

  /// Reads the next line of the child's output, and waits at most `seconds` for the line.
  read_status read_line(std::string& line, double seconds);

  /// Waits until the child has exited. Returns "" for exit code 0, else for example "exit code 3"
  /// or "signal 11".
  std::string wait();
  /// Sends SIGKILL. The caller still has to call wait().
  void kill() const;

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  std::string unread_;
};

}  // namespace quarry::tool
