// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Output that is not lost silently: a disk may be full, and a pipe may be closed.
///
/// A file that cannot be opened is an input_error, as its name comes from the command line. Bytes
/// that cannot be written are an error with the reason of the system.

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace quarry::tool {

class output_file {
 public:
  enum class mode { replace, append };
  /// Throws input_error if the file cannot be opened.
  output_file(const std::string& name, mode how);
  /// Writes the text and flushes it. Throws error if a byte could not be written.
  void write(std::string_view text);
  /// Closes the file. Throws error if a byte could not be written.
  void close();

 private:
  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string name_;
  std::unique_ptr<std::FILE, closer> file_;
};

/// Replaces the contents of a file.
void write_file(const std::string& name, std::string_view text);

/// Flushes standard output. Throws error if a byte of the program's output could not be written.
void flush_standard_output();

}  // namespace quarry::tool
