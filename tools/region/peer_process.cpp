// SPDX-License-Identifier: Apache-2.0
#include "region/peer_process.hpp"

#include "common/command.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <sstream>

namespace quarry::tool {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> library(const fs::path& beside, const char* file) {
  for (const fs::path& folder :
       {beside, fs::path("/usr/lib/x86_64-linux-gnu"), fs::path("/usr/lib/aarch64-linux-gnu"),
        fs::path("/usr/lib64"), fs::path("/usr/lib"), fs::path("/usr/local/lib")})
    if (fs::exists(folder / file)) return (folder / file).string();
  return std::nullopt;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::FILE* start(const std::string& program, const allocator_under_test& who,
                 const std::string& arguments) {
  std::string line = quoted(program) + " " + who.heap + " " + arguments;
  if (!who.preload.empty()) line = "LD_PRELOAD=" + quoted(who.preload) + " " + line;
  return ::popen(line.c_str(), "r");
}

}  // namespace

std::vector<allocator_under_test> available_allocators(const std::string& program) {
  const fs::path beside = fs::path(program).parent_path();
  std::vector<allocator_under_test> all{{"regions", "regions", ""}, {"glibc", "malloc", ""}};
  if (const auto found = library(beside, "libjemalloc.so.2"))
    all.push_back({"jemalloc", "malloc", *found});
  if (const auto found = library(beside, "libmimalloc.so.2"))
    all.push_back({"mimalloc", "malloc", *found});
  return all;
}

std::string own_library(const std::string& program, const std::string& file) {
  const fs::path beside = fs::absolute(program).parent_path();
  for (const fs::path& folder : {beside, beside / "../tools", beside / "../lib"})
    if (fs::exists(folder / file)) return fs::canonical(folder / file).string();
  throw input_error("no library " + file + " in " + beside.string() + ", ../tools or ../lib");
}

std::string peer_program(const std::string& given) {
  std::string program =
      given.empty() ? (fs::read_symlink("/proc/self/exe").parent_path() / "region_peer").string()
                    : given;
  if (!fs::exists(program)) throw input_error("no program " + program + " (see --peer)");
  return program;
}

peer_process::peer_process(const std::string& program, const allocator_under_test& who,
                           const std::string& arguments)
    : what_(program + " " + arguments + " for " + who.name),
      pipe_(start(program, who, arguments), ::pclose) {
  if (pipe_ == nullptr) throw error("cannot start " + what_);
}

std::vector<double> peer_process::numbers() {
  std::string text;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe_.get()) != nullptr) text += part.data();
  std::istringstream in(text);
  std::vector<double> all;
  for (double number = 0; in >> number;) all.push_back(number);
  if (all.empty()) throw error(what_ + " printed no number");
  return all;
}

}  // namespace quarry::tool
