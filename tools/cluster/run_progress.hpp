// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Shows how far the run of an application is, with a bar or lines on stderr (common/progress.hpp).
/// Worker 0 reports the steps that it has finished; a simulation also shows events in between.

#include "common/progress.hpp"
#include "common/text.hpp"

#include <quarry/cluster/worker.hpp>

#include <apps/common/phases.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace quarry::tool {

class run_progress {
 public:
  /// A bar that is not shown leaves the terminal to other lines.
  explicit run_progress(bool is_shown) : is_shown_(is_shown) {}

  /// Returns what the application calls after each step: nothing, except at worker 0.
  apps::step_listener listener(const cluster::worker& w) {
    if (!is_shown_ || w.number() != 0) return {};
    return [this](const char* step, std::uint64_t done, std::uint64_t all) {
      fraction_ = static_cast<double>(done) / static_cast<double>(all);
      text_ = fmt::format("{} {} of {}", step, grouped(done), grouped(all));
      bar_.show(fraction_, text_);
    };
  }
  /// After an event of a simulation.
  void show_events(std::uint64_t events) {
    if (is_shown_ && events % 1024 == 0)
      bar_.show(fraction_, fmt::format("{}, {} events", text_, grouped(events)));
  }
  /// Erases the bar for the results of the run. Nothing is shown after this.
  void end() {
    is_shown_ = false;
    bar_.clear();
  }

 private:
  progress bar_;
  bool is_shown_;
  double fraction_ = 0;
  std::string text_ = "start";
};

}  // namespace quarry::tool
