// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exceptions that host functions of the library throw. A message says what failed, gives the
/// values, and says what to do.

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace quarry {

/// The base of all errors except out_of_memory.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A kernel failed on the CPU backend: a deadlock, an invalid mask, or more steps than its limit.
class kernel_error : public error {
 public:
  using error::error;
};

/// A failed allocation of memory for the library itself: a std::bad_alloc with a message.
class out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace quarry
