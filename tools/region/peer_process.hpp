// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Allocators that are compared, and processes of region_peer that run a workload on one of them.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace quarry::tool {

struct allocator_under_test {
  std::string name;
  std::string heap;     // first argument of region_peer: regions or malloc
  std::string preload;  // library for LD_PRELOAD; empty: none
};

/// Returns regions and the installed general-purpose allocators. Libraries are also looked for in
/// the folder of `program`.
std::vector<allocator_under_test> available_allocators(const std::string& program);

/// Returns the path of a library of this project that is built or installed with `program`. Throws
/// input_error if there is none.
std::string own_library(const std::string& program, const std::string& file);

/// Returns the path of region_peer: `given`, or, if it is empty, the one in the folder of this
/// program. Throws input_error if there is none.
std::string peer_program(const std::string& given);

/// A running process of region_peer.
class peer_process {
 public:
  peer_process(const std::string& program, const allocator_under_test& who,
               const std::string& arguments);

  /// Waits for the end of the process and returns the numbers that it printed. Throws error if
  /// there are none.
  std::vector<double> numbers();

 private:
  std::string what_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe_;
};

}  // namespace quarry::tool
