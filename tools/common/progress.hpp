// SPDX-License-Identifier: Apache-2.0
#pragma once
/// progress: shows how far a long command is. On a terminal it draws a bar; elsewhere it prints a
/// line every ten seconds. It writes to stderr, so that stdout holds only the command's results.

#include <chrono>
#include <string>
#include <string_view>

namespace quarry::tool {

class progress {
 public:
  progress();
  ~progress() { clear(); }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Shows the fraction `done`, in [0, 1]. Most calls only read the clock, so that a loop may call
  /// show() in every iteration.
  void show(double done, std::string_view what);
  /// Prints a line if stderr is not a terminal. Does nothing where a bar is drawn.
  void note(std::string_view line) const;
  /// Erases the bar. Call clear() before printing to the terminal.
  void clear() noexcept;

 private:
  using clock = std::chrono::steady_clock;

  bool terminal_;
  bool drawn_ = false;
  clock::time_point started_ = clock::now();
  clock::time_point shown_ = started_;
};

}  // namespace quarry::tool
