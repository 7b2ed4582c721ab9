// SPDX-License-Identifier: Apache-2.0
#include "common/output.hpp"

#include "common/parse.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace quarry::tool {
namespace {

[[noreturn]] void fail_to_write(std::string_view name) {
  throw error(fmt::format("cannot write {}: {}", name, std::strerror(errno)));
}

}  // namespace

output_file::output_file(const std::string& name, mode how)
    : name_(name), file_(std::fopen(name.c_str(), how == mode::append ? "ab" : "wb")) {
  if (file_ == nullptr)
    throw input_error(fmt::format("cannot write {}: {}", name, std::strerror(errno)));
}

void output_file::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0)
    fail_to_write(name_);
}

void output_file::close() {
  if (std::fclose(file_.release()) != 0) fail_to_write(name_);
}

void write_file(const std::string& name, std::string_view text) {
  output_file file(name, output_file::mode::replace);
  file.write(text);
  file.close();
}

void flush_standard_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_to_write("standard output");
}

}  // namespace quarry::tool
