// SPDX-License-Identifier: Apache-2.0
#include "bench_child.hpp"

#include "bench_json.hpp"
#include "bench_patience.hpp"
#include "command.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string_view>

namespace quarry::tool {
namespace {

/// A file without a name that holds some text.
struct file {
  int number = -1;

  explicit file(const std::string& text) {
    if (text.empty()) return;
    number = ::memfd_create("quarry-bench", MFD_CLOEXEC);
    if (number < 0) throw error(std::string("no file in memory: ") + std::strerror(errno));
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n =
          ::pwrite(number, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno != EINTR)
        throw error(std::string("writing to a file in memory: ") + std::strerror(errno));
      if (n > 0) done += static_cast<std::size_t>(n);
    }
  }
  ~file() {
    if (number >= 0) ::close(number);
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
};

/// A running program and the pipe from its stdout.
class process {
 public:
  enum class errors : bool { shown, hidden };

  /// `input` is what it reads from stdin, at most a few megabytes.
  process(const std::vector<std::string>& command, errors show, const std::string& input = {}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw error(std::string("no pipe: ") + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const file given(input);
    if (!input.empty()) ::posix_spawn_file_actions_adddup2(&actions, given.number, STDIN_FILENO);
    if (show == errors::hidden)
      ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int problem =
        ::posix_spawnp(&id_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    if (problem == 0) return;
    ::close(output_);
    throw error(fmt::format("{} does not start: {}", command[0], std::strerror(problem)));
  }
  ~process() {
    ::close(output_);
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    (void)wait();
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  enum class reading : std::uint8_t { line, end, late };

  /// The next line, or why there is none.
  reading read_line(std::string& line, double seconds) {
    const auto end = clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      if (const std::size_t at = unread_.find('\n'); at != std::string::npos) {
        line = unread_.substr(0, at);
        unread_.erase(0, at + 1);
        return reading::line;
      }
      const double left = std::chrono::duration<double, std::milli>(end - clock::now()).count();
      pollfd waiting{output_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp(left, 0.0, 1e9)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return reading::late;
      char text[4096];
      const ssize_t n = ::read(output_, text, sizeof text);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return reading::end;
      unread_.append(text, static_cast<std::size_t>(n));
    }
  }

  void kill() const { ::kill(id_, SIGKILL); }

  /// As waitpid tells it.
  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = 0;
    return status;
  }

 private:
  using clock = std::chrono::steady_clock;

  pid_t id_ = 0;
  int output_ = -1;
  std::string unread_;
};

constexpr double time_to_end = 5;  // seconds, after a child's last line

bench_figures lost(bench_outcome outcome, std::string note) {
  bench_figures f;
  f.outcome = outcome;
  f.note = std::move(note);
  return f;
}

/// What a process that ended without its cell's line died of.
bench_figures death(int status) {
  if (WIFSIGNALED(status))
    return lost(bench_outcome::crashed, fmt::format("signal {}", WTERMSIG(status)));
  return lost(bench_outcome::crashed, fmt::format("exit code {}", WEXITSTATUS(status)));
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
    process child({"/proc/self/exe", std::string(bench_child_command), "-"}, process::errors::shown,
                  to_text(work.rest()));
    auto state = process::reading::line;
    for (bool was_lost = false; !was_lost && !work.at_end();) {
      std::string line;
      const double limit = work.limit();
      state = child.read_line(line, limit);
      if (state == process::reading::line) {
        if (!line.starts_with('{')) continue;
        const bench_figures f = figures_from_json(nlohmann::ordered_json::parse(line));
        was_lost = f.lost();
        work.done(f);
        continue;
      }
      if (state == process::reading::late) child.kill();
      const int status = child.wait();
      bench_figures f = state == process::reading::late
                            ? lost(bench_outcome::timed_out, fmt::format("after {} s", limit))
                            : death(status);
      if (state == process::reading::late) f.seconds = limit;
      work.done(f);
      was_lost = true;
    }
    std::string nothing;
    if (state == process::reading::line) (void)child.read_line(nothing, time_to_end);
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
    return found_wrong;
  }
  return all_well;
}

int bench_child(const char* text) {
  return bench_child(text, [](const bench_request& request, const bench_emit& emit) {
    (request.machine == "cuda" ? run_bench_cuda : run_bench_cpu)(request, emit);
  });
}

std::string first_line_of(const std::vector<std::string>& command) {
  try {
    process program(command, process::errors::hidden);
    std::string line;
    const bool got = program.read_line(line, 5) == process::reading::line;
    return got && program.wait() == 0 ? line : "";
  } catch (const error&) {
    return {};
  }
}

}  // namespace quarry::tool
