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

/// A file without a name that holds some text.
class file_in_memory {
 public:
  explicit file_in_memory(const std::string& text) {
    if (text.empty()) return;
    number_ = ::memfd_create("quarry", MFD_CLOEXEC);
    if (number_ < 0) throw error(std::string("no file in memory: ") + std::strerror(errno));
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n =
          ::pwrite(number_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno != EINTR)
        throw error(std::string("writing to a file in memory: ") + std::strerror(errno));
      if (n > 0) done += static_cast<std::size_t>(n);
    }
  }
  ~file_in_memory() {
    if (number_ >= 0) ::close(number_);
  }
  file_in_memory(const file_in_memory&) = delete;
  file_in_memory& operator=(const file_in_memory&) = delete;

  int number() const { return number_; }

 private:
  int number_ = -1;
};

}  // namespace

child_process::child_process(const std::vector<std::string>& command, const std::string& input) {
  const file_in_memory given(input);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw error(std::string("no pipe: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (!input.empty()) ::posix_spawn_file_actions_adddup2(&actions, given.number(), STDIN_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int problem = ::posix_spawnp(&id_, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  output_ = ends[0];
  if (problem == 0) return;
  ::close(output_);
  throw error(fmt::format("{} does not start: {}", command[0], std::strerror(problem)));
}

child_process::~child_process() {
  ::close(output_);
  if (id_ <= 0) return;
  kill();
  (void)end();
}

child_process::reading child_process::read_line(std::string& line, double seconds) {
  using clock = std::chrono::steady_clock;
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

std::string child_process::end() {
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = 0;
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit code {}", WEXITSTATUS(status));
}

void child_process::kill() const { ::kill(id_, SIGKILL); }

}  // namespace quarry::tool
