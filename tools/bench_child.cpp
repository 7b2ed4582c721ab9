// SPDX-License-Identifier: Apache-2.0
#include "bench_child.hpp"

#include "bench_json.hpp"
#include "command.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

namespace quarry::tool {
namespace {

/// A running program and the pipe from its stdout.
class process {
 public:
  enum class errors : bool { shown, hidden };

  process(const std::vector<std::string>& command, errors show) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw error(std::string("no pipe: ") + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
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

}  // namespace

void bench_in_children(const bench_request& request, const bench_emit& emit) {
  std::size_t next = 0;
  unsigned losses = 0;
  const auto done = [&](const bench_figures& f) {
    emit(request.cells[next++], f);
    if (f.lost()) ++losses;
  };
  while (next < request.cells.size() && losses < most_lost) {
    bench_request rest = request;
    rest.cells.erase(rest.cells.begin(), rest.cells.begin() + static_cast<std::ptrdiff_t>(next));
    process child({"/proc/self/exe", std::string(bench_child_command), to_json(rest).dump()},
                  process::errors::shown);
    const unsigned losses_before = losses;
    auto state = process::reading::line;
    while (next < request.cells.size() && losses == losses_before) {
      std::string line;
      state = child.read_line(line, request.limit);
      if (state != process::reading::line) break;
      if (line.starts_with('{')) done(figures_from_json(nlohmann::ordered_json::parse(line)));
    }
    if (state == process::reading::late) {
      child.kill();
      (void)child.wait();
      done(lost(bench_outcome::timed_out, fmt::format("after {} s", request.limit)));
    } else if (state == process::reading::end) {
      done(death(child.wait()));
    } else {
      std::string nothing;
      (void)child.read_line(nothing, time_to_end);
    }
  }
  while (next < request.cells.size())
    emit(request.cells[next++],
         lost(bench_outcome::not_run, fmt::format("{} cells before it were lost", losses)));
}

int bench_child(const char* text, const bench_runner& run) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read what we find
  const bench_request request = request_from_json(nlohmann::ordered_json::parse(text));
  try {
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
