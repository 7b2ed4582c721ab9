// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How far a long command is: a bar on a terminal, a line now and then elsewhere. On stderr, so
/// that what a command prints stays clean.

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

  /// `done` of 0 … 1. Cheap: may be called as often as one likes.
  void show(double done, std::string_view what);
  /// A line that stays where there is no bar, and is left out where there is one.
  void note(std::string_view line);
  /// Takes the bar away, before something else is printed.
  void clear() noexcept;

 private:
  using clock = std::chrono::steady_clock;

  bool terminal_;
  bool drawn_ = false;
  clock::time_point started_ = clock::now();
  clock::time_point shown_ = started_;
};

}  // namespace quarry::tool
