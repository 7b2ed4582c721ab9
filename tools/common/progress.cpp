// SPDX-License-Identifier: Apache-2.0
#include "common/progress.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace quarry::tool {
namespace {

constexpr std::size_t bar_width = 30;
constexpr auto frame_interval = std::chrono::milliseconds(80);
constexpr auto line_interval = std::chrono::seconds(10);

bool stderr_is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

progress::progress() : terminal_(stderr_is_terminal()) {}

void progress::show(double done, std::string_view what) {
  const auto now = clock::now();
  if (!terminal_) {
    if (now - shown_ < line_interval) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    fmt::print(stderr, "{:3.0f} %  {}  ({:.0f} s)\n", 100 * done, what, seconds);
    return;
  }
  if (drawn_ && now - shown_ < frame_interval) return;
  shown_ = now;
  drawn_ = true;
  const double fraction = std::clamp(done, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(fraction * bar_width);
  std::string line = fmt::format("[{}{}] {:3.0f} %  {}", std::string(full, '='),
                                 std::string(bar_width - full, ' '), 100 * fraction, what);
  line.resize(std::min(line.size(), terminal_width() - 1));
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
}

void progress::note(std::string_view line) const {
  if (!terminal_) fmt::print(stderr, "{}\n", line);
}

void progress::clear() noexcept {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace quarry::tool
