// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A fuzz target: a function that accepts any bytes. QUARRY_FUZZ_TARGET makes it
///
///   a libFuzzer program   with QUARRY_LIBFUZZER (preset fuzz, `make fuzz`)
///   a GoogleTest test     otherwise: valid inputs, the corpus, and a fixed number of mutations
///
/// A finding is an exception that leaves the function, a report of a sanitizer, a crash, an input
/// that does not end, or one that takes all memory.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::fuzz {

using input = std::span<const std::uint8_t>;

struct target {
  const char* name;  // of its folder in tests/fuzz/corpus
  void (*run)(input);
  std::vector<std::string> (*seeds)();  // valid inputs, beside those of the corpus
  unsigned mutations;                   // in a test: at most a second under a sanitizer
};

inline std::string_view text_of(input bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reports a finding.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

/// A file in memory, for readers that take a path.
class memory_file {
 public:
  memory_file() : descriptor_(::memfd_create("fuzz", 0)) {
    require(descriptor_ >= 0, "cannot create a file in memory");
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() { ::close(descriptor_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void set(std::string_view contents) const {
    const bool is_set = ::ftruncate(descriptor_, 0) == 0 &&
                        ::pwrite(descriptor_, contents.data(), contents.size(), 0) ==
                            static_cast<::ssize_t>(contents.size());
    require(is_set, "cannot write a file in memory");
  }

 private:
  int descriptor_;
};

/// Writes the seeds of the target into the first folder of libFuzzer's command line.
inline void write_seeds(const target& t, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    unsigned number = 0;
    for (const std::string& seed : t.seeds())
      std::ofstream(std::string(argv[i]) + "/seed-" + std::to_string(number++), std::ios::binary)
          << seed;
    return;
  }
}

}  // namespace quarry::fuzz

#ifdef QUARRY_LIBFUZZER
#define QUARRY_FUZZ_TARGET(name, run, seeds, mutations)                               \
  extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {                      \
    quarry::fuzz::write_seeds({#name, run, seeds, mutations}, *argc, *argv);          \
    return 0;                                                                         \
  }                                                                                   \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    run({data, size});                                                                \
    return 0;                                                                         \
  }                                                                                   \
  static_assert(true)
#else
#include "fuzz/replay.hpp"
#define QUARRY_FUZZ_TARGET(name, run, seeds, mutations)                      \
  TEST(Fuzz, name) { quarry::fuzz::replay({#name, run, seeds, mutations}); } \
  static_assert(true)
#endif
