// SPDX-License-Identifier: Apache-2.0
#include "common/child_process.hpp"

#include <quarry/core/error.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

namespace quarry::tool {
namespace {

/// An anonymous file in memory that holds a text. The child reads the text from the file, so that
/// the parent never blocks on a full pipe.
class memory_file {
 public:
  explicit memory_file(const std::string& text) {
    if (text.empty()) return;
    descriptor_ = ::memfd_create("quarry", MFD_CLOEXEC);
    if (descriptor_ < 0) throw error(std::string("memfd_create failed: ") + std::strerror(errno));
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n =
          ::pwrite(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno != EINTR)
        throw error(std::string("writing to a memory file failed: ") + std::strerror(errno));
      if (n > 0) done += static_cast<std::size_t>(n);
    }
  }
  ~memory_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace

child_process::child_process(const std::vector<std::string>& command, const std::string& input) {
  const memory_file stdin_file(input);
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0)
    throw error(std::string("pipe2 failed: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  if (!input.empty())
    ::posix_spawn_file_actions_adddup2(&actions, stdin_file.descriptor(), STDIN_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int problem =
      ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  output_ = pipe_ends[0];
  if (problem == 0) return;
  ::close(output_);
  throw error(fmt::format("cannot start {}: {}", command[0], std::strerror(problem)));
}

child_process::~child_process() {
  ::close(output_);
  if (pid_ <= 0) return;
  kill();
  (void)wait();
}

child_process::read_status child_process::read_line(std::string& line, double seconds) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    if (const std::size_t at = unread_.find('\n'); at != std::string::npos) {
      line = unread_.substr(0, at);
      unread_.erase(0, at + 1);
      return read_status::line;
    }
    const double remaining =
        std::chrono::duration<double, std::milli>(deadline - clock::now()).count();
    pollfd waiting{output_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp(remaining, 0.0, 1e9)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return read_status::timed_out;
    char text[4096];
    const ssize_t n = ::read(output_, text, sizeof text);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return read_status::end_of_output;
    unread_.append(text, static_cast<std::size_t>(n));
  }
}

std::string child_process::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit code {}", WEXITSTATUS(status));
}

void child_process::kill() const { ::kill(pid_, SIGKILL); }

}  // namespace quarry::tool
