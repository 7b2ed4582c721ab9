// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the library throws on the host. Messages say what was asked, what there is, what to do.

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace quarry {

/// Base of every error that is not a lack of memory.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A kernel did something no schedule can carry out: deadlock, a wrong mask, too many steps.
class kernel_error : public error {
 public:
  using error::error;
};

/// Memory that could not be had; a std::bad_alloc with a message.
class out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace quarry
