// SPDX-License-Identifier: Apache-2.0
#include "bench/child.hpp"

#include "bench/json.hpp"
#include "bench/slow_filter.hpp"
#include "common/child_process.hpp"
#include "common/command.hpp"

#include <fmt/format.h>

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>
#include <string_view>

namespace quarry::tool {
namespace {

constexpr double exit_timeout = 5;  // seconds that a child may take to exit after its last line

bench_result lost(bench_outcome outcome, std::string note) {
  bench_result r;
  r.outcome = outcome;
  r.note = std::move(note);
  return r;
}

/// A position in the measurements of several requests. Emits one result per measurement, in order.
class request_cursor {
 public:
  request_cursor(const std::vector<bench_request>& requests, const bench_request_callback& emit)
      : requests_(requests), emit_(emit), lost_(requests.size()) {
    for (const bench_request& r : requests) filters_.emplace_back(r.time_limit);
    skip_finished_requests();
  }

  bool at_end() const { return request_ == requests_.size(); }
  double timeout() const { return requests_[request_].timeout; }

  /// Returns requests that hold the measurements from the current position on.
  std::vector<bench_request> remaining() const {
    std::vector<bench_request> all(requests_.begin() + static_cast<std::ptrdiff_t>(request_),
                                   requests_.end());
    auto& list = all.front().measurements;
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(measurement_));
    return all;
  }

  /// Emits the result of the current measurement, and moves to the next.
  void finish(const bench_result& result) {
    filters_[request_].note(current(), result.seconds);
    if (result.lost()) ++lost_[request_];
    emit_and_advance(result);
  }
  /// Emits a result for each measurement that is not to be run, up to the first that is.
  void leave_out() {
    while (!at_end()) {
      const std::string reason = filters_[request_].reason_to_skip(current());
      if (lost_[request_] >= max_lost)
        emit_and_advance(
            lost(bench_outcome::not_run,
                 fmt::format("{} data points before this one were lost", lost_[request_])));
      else if (!reason.empty())
        emit_and_advance(given_up(reason));
      else
        return;
    }
  }

 private:
  const bench_measurement& current() const {
    return requests_[request_].measurements[measurement_];
  }
  void emit_and_advance(const bench_result& result) {
    emit_(request_, current(), result);
    ++measurement_;
    skip_finished_requests();
  }
  void skip_finished_requests() {
    while (!at_end() && measurement_ == requests_[request_].measurements.size()) {
      ++request_;
      measurement_ = 0;
    }
  }

  const std::vector<bench_request>& requests_;
  const bench_request_callback& emit_;
  std::vector<bench_slow_filter> filters_;  // one for each request
  std::vector<unsigned> lost_;              // measurements, for each request
  std::size_t request_ = 0;
  std::size_t measurement_ = 0;
};

std::vector<bench_request> parse_requests(const char* text) {
  if (std::string_view(text) != "-") return requests_of(text);
  return requests_of({std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()});
}

}  // namespace

void measure_in_children(const std::vector<bench_request>& requests,
                         const bench_request_callback& emit) {
  using read_status = child_process::read_status;
  request_cursor cursor(requests, emit);
  while (cursor.leave_out(), !cursor.at_end()) {
    child_process child({"/proc/self/exe", std::string(bench_child_command), "-"},
                        nlohmann::json(cursor.remaining()).dump());
    auto status = read_status::line;
    for (bool was_lost = false; !was_lost && !cursor.at_end();) {
      std::string line;
      const double timeout = cursor.timeout();
      status = child.read_line(line, timeout);
      if (status == read_status::line) {
        const std::optional<bench_result> result = result_of(line);
        if (!result) continue;  // a kernel may print
        was_lost = result->lost();
        cursor.finish(*result);
        continue;
      }
      if (status == read_status::timed_out) child.kill();
      const std::string end = child.wait();
      bench_result result = status == read_status::timed_out
                                ? lost(bench_outcome::timed_out, fmt::format("after {} s", timeout))
                                : lost(bench_outcome::crashed, end.empty() ? "exit code 0" : end);
      if (status == read_status::timed_out) result.seconds = timeout;
      cursor.finish(result);
      was_lost = true;
    }
    std::string ignored;
    if (status == read_status::line) (void)child.read_line(ignored, exit_timeout);
  }
}

void measure_in_children(const bench_request& request, const bench_callback& emit) {
  measure_in_children(
      std::vector<bench_request>{request},
      [&](std::size_t, const bench_measurement& m, const bench_result& r) { emit(m, r); });
}

int bench_child(const char* requests, const bench_runner& run) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a child without a parent has no reader
  try {
    for (const bench_request& request : parse_requests(requests))
      run(request, [](const bench_measurement&, const bench_result& r) {
        fmt::print("{}\n", nlohmann::json(r).dump());
        std::fflush(stdout);
      });
  } catch (const std::exception&) {  // The runner has already emitted the error as a result.
    return exit_check_failed;
  }
  return exit_success;
}

int bench_child(const char* requests) {
  return bench_child(requests, [](const bench_request& request, const bench_callback& emit) {
    (request.backend == "cuda" ? run_bench_cuda : run_bench_cpu)(request, emit);
  });
}

}  // namespace quarry::tool
