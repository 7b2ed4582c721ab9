// SPDX-License-Identifier: Apache-2.0
#include "bench/child.hpp"

#include "bench/json.hpp"
#include "bench/patience.hpp"
#include "common/child_process.hpp"
#include "common/command.hpp"

#include <fmt/format.h>

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <string_view>

namespace quarry::tool {
namespace {

constexpr double time_to_end = 5;  // seconds, after a child's last line

bench_figures lost(bench_outcome outcome, std::string note) {
  bench_figures f;
  f.outcome = outcome;
  f.note = std::move(note);
  return f;
}

/// Goes through the cells of several requests.
class progress_of {
 public:
  progress_of(const std::vector<bench_request>& requests, const bench_emit_of& emit)
      : requests_(requests), emit_(emit) {
    for (const bench_request& r : requests) patience_.emplace_back(r.share);
    losses_.resize(requests.size());
    skip();
  }

  bool at_end() const { return request_ == requests_.size(); }
  double limit() const { return requests_[request_].limit; }

  /// What is left to do.
  std::vector<bench_request> rest() const {
    std::vector<bench_request> all(requests_.begin() + static_cast<std::ptrdiff_t>(request_),
                                   requests_.end());
    auto& cells = all.front().cells;
    cells.erase(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(cell_));
    return all;
  }

  void done(const bench_figures& f) {
    patience_[request_].note(cell(), f.seconds);
    if (f.lost()) ++losses_[request_];
    pass(f);
  }
  /// What is not worth sending to a new child.
  void leave_out() {
    while (!at_end()) {
      const std::string slower = patience_[request_].objection(cell());
      if (losses_[request_] >= most_lost)
        pass(lost(bench_outcome::not_run,
                  fmt::format("{} cells before it were lost", losses_[request_])));
      else if (!slower.empty())
        pass(given_up(slower));
      else
        return;
    }
  }

 private:
  const bench_cell& cell() const { return requests_[request_].cells[cell_]; }
  void pass(const bench_figures& f) {
    emit_(request_, cell(), f);
    ++cell_;
    skip();
  }
  /// To the next request that has cells, where this one has no more.
  void skip() {
    while (!at_end() && cell_ == requests_[request_].cells.size()) {
      ++request_;
      cell_ = 0;
    }
  }

  const std::vector<bench_request>& requests_;
  const bench_emit_of& emit_;
  std::vector<bench_patience> patience_;
  std::vector<unsigned> losses_;
  std::size_t request_ = 0;
  std::size_t cell_ = 0;
};

std::string to_text(const std::vector<bench_request>& requests) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const bench_request& r : requests) all.push_back(to_json(r));
  return all.dump();
}

std::vector<bench_request> requests_from(const char* text) {
  using json = nlohmann::ordered_json;
  const json j = std::string_view(text) == "-" ? json::parse(std::cin) : json::parse(text);
  std::vector<bench_request> all;
  if (j.is_object())
    all.push_back(request_from_json(j));
  else
    for (const json& one : j) all.push_back(request_from_json(one));
  return all;
}

}  // namespace

void bench_in_children(const std::vector<bench_request>& requests, const bench_emit_of& emit) {
  progress_of work(requests, emit);
  while (work.leave_out(), !work.at_end()) {
    child_process child({"/proc/self/exe", std::string(bench_child_command), "-"},
                        to_text(work.rest()));
    using read_status = child_process::read_status;
    auto state = read_status::line;
    for (bool was_lost = false; !was_lost && !work.at_end();) {
      std::string line;
      const double limit = work.limit();
      state = child.read_line(line, limit);
      if (state == read_status::line) {
        if (!line.starts_with('{')) continue;
        const bench_figures f = figures_from_json(nlohmann::ordered_json::parse(line));
        was_lost = f.lost();
        work.done(f);
        continue;
      }
      if (state == read_status::timed_out) child.kill();
      const std::string end = child.wait();
      bench_figures f = state == read_status::timed_out
                            ? lost(bench_outcome::timed_out, fmt::format("after {} s", limit))
                            : lost(bench_outcome::crashed, end.empty() ? "exit code 0" : end);
      if (state == read_status::timed_out) f.seconds = limit;
      work.done(f);
      was_lost = true;
    }
    std::string nothing;
    if (state == read_status::line) (void)child.read_line(nothing, time_to_end);
  }
}

void bench_in_children(const bench_request& request, const bench_emit& emit) {
  bench_in_children(
      std::vector<bench_request>{request},
      [&](std::size_t, const bench_cell& cell, const bench_figures& f) { emit(cell, f); });
}

int bench_child(const char* text, const bench_runner& run) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read what we find
  try {
    for (const bench_request& request : requests_from(text))
      run(request, [](const bench_cell&, const bench_figures& f) {
        fmt::print("{}\n", to_json(f).dump());
        std::fflush(stdout);
      });
  } catch (const std::exception&) {  // it was emitted
    return exit_check_failed;
  }
  return exit_success;
}

int bench_child(const char* text) {
  return bench_child(text, [](const bench_request& request, const bench_emit& emit) {
    (request.backend == "cuda" ? run_bench_cuda : run_bench_cpu)(request, emit);
  });
}

}  // namespace quarry::tool
