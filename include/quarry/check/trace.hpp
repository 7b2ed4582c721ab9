// SPDX-License-Identifier: Apache-2.0
#pragma once
/// trace: the interleaved steps of one run as text, one line per access to shared memory and per
/// call.
///
///             lane 1  calls malloc(96)
///   step 17   lane 1  compare_exchange words[6]: 0x18 -> 0x19
///             lane 1  gets pool+0x40 (#3)
///
/// Words of the metadata have the names that the allocator gave to its arrays (carve). Words of the
/// pool are shown by their offset.

#include <quarry/core/carve.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace quarry {

class trace {
 public:
  using sink = std::function<void(const std::string& line)>;

  explicit trace(sink write) : write_(std::move(write)) {}

  void begin(const carve& metadata, memory_range pool);
  /// Writes a text of one or more lines.
  void write(const std::string& text) const;

  // Called by lanes. Race detectors ignore the accesses.
  void malloc_called(std::uint64_t lane, std::uint64_t n) const;
  void malloc_returned(std::uint64_t lane, const void* p, std::uint64_t number) const;
  void free_called(std::uint64_t lane, const void* p, std::uint64_t number) const;
  void step(const simt::step& s);

 private:
  std::string name_of(const void* where) const;
  void write_of_lane(std::uint64_t lane, const std::string& text) const;
  void write_line(std::string when, std::uint64_t lane, const std::string& text) const;

  sink write_;
  const carve* metadata_ = nullptr;
  memory_range pool_;
  std::uint64_t steps_ = 0;
};

}  // namespace quarry
