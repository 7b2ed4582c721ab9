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

#include <quarry/check/text.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/simt/explore.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace quarry {

class trace {
 public:
  using sink = std::function<void(const std::string& line)>;

  explicit trace(sink write) : write_(std::move(write)) {}

  void begin(const carve& metadata, memory_range pool) {
    metadata_ = &metadata;
    pool_ = pool;
    steps_ = 0;
  }
  /// Writes a text of one or more lines.
  void write(const std::string& text) const {
    for (std::size_t first = 0; first < text.size();) {
      const std::size_t last = std::min(text.find('\n', first), text.size());
      write_(text.substr(first, last - first));
      first = last + 1;
    }
  }

  // Called by lanes. Race detectors ignore the accesses.
  void malloc_called(std::uint64_t lane, std::uint64_t n) const {
    write_of_lane(lane, "calls malloc(" + std::to_string(n) + ")");
  }
  void malloc_returned(std::uint64_t lane, const void* p, std::uint64_t number) const {
    std::string text = "gets " + address_text(pool_, p);
    if (p != nullptr) text += " (#" + std::to_string(number) + ")";
    write_of_lane(lane, text);
  }
  void free_called(std::uint64_t lane, const void* p, std::uint64_t number) const {
    write_of_lane(lane, "frees " + address_text(pool_, p) + " (#" + std::to_string(number) + ")");
  }
  void step(const simt::step& s) {
    std::string text = s.what + (" " + name_of(s.where)) + ": " + to_hex(s.before);
    if (s.after != s.before) text += " -> " + to_hex(s.after);
    write_line("step " + std::to_string(++steps_), s.thread, text);
  }

 private:
  std::string name_of(const void* where) const {
    std::string name = metadata_ != nullptr ? metadata_->name_of(where) : std::string{};
    return name.empty() ? address_text(pool_, where) : name;
  }
  void write_of_lane(std::uint64_t lane, const std::string& text) const {
    const simt::host_section hidden;
    write_line("", lane, text);
  }
  void write_line(std::string when, std::uint64_t lane, const std::string& text) const {
    when.resize(std::max<std::size_t>(when.size(), 10), ' ');
    write_(when + "lane " + std::to_string(lane) + "  " + text);
  }

  sink write_;
  const carve* metadata_ = nullptr;
  memory_range pool_;
  std::uint64_t steps_ = 0;
};

}  // namespace quarry
