// SPDX-License-Identifier: Apache-2.0
#pragma once
/// story: a run in words, one line for each shared access and each call.
///
///             lane 1  calls malloc(96)
///   step 17   lane 1  compare_exchange words[6]: 0x18 -> 0x19
///             lane 1  gets pool+0x40 (#3)
///
/// Metadata is named as the allocator named it when it was carved, pool memory by its offset.

#include <quarry/check/text.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/simt/explore.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace quarry {

class story {
 public:
  using listener = std::function<void(const std::string& line)>;

  explicit story(listener tell) : tell_(std::move(tell)) {}

  void begin(const carve& metadata, memory_range pool) {
    metadata_ = &metadata;
    pool_ = pool;
    steps_ = 0;
  }
  void say(const std::string& text) const {  // one line or several
    for (std::size_t first = 0; first < text.size();) {
      const std::size_t last = std::min(text.find('\n', first), text.size());
      tell_(text.substr(first, last - first));
      first = last + 1;
    }
  }

  // From a lane, hidden from race detectors.
  void asks(std::uint64_t lane, std::uint64_t n) const {
    of_lane(lane, "calls malloc(" + std::to_string(n) + ")");
  }
  void gets(std::uint64_t lane, const void* p, std::uint64_t number) const {
    std::string text = "gets " + place_in(pool_, p);
    if (p != nullptr) text += " (#" + std::to_string(number) + ")";
    of_lane(lane, text);
  }
  void frees(std::uint64_t lane, const void* p, std::uint64_t number) const {
    of_lane(lane, "frees " + place_in(pool_, p) + " (#" + std::to_string(number) + ")");
  }
  void step(const simt::step& s) {
    std::string text = s.what + (" " + name_of(s.where)) + ": " + to_hex(s.before);
    if (s.after != s.before) text += " -> " + to_hex(s.after);
    line("step " + std::to_string(++steps_), s.thread, text);
  }

 private:
  std::string name_of(const void* where) const {
    std::string name = metadata_ != nullptr ? metadata_->name_of(where) : std::string{};
    return name.empty() ? place_in(pool_, where) : name;
  }
  void of_lane(std::uint64_t lane, const std::string& text) const {
    const simt::host_section hidden;
    line("", lane, text);
  }
  void line(std::string when, std::uint64_t lane, const std::string& text) const {
    when.resize(std::max<std::size_t>(when.size(), 10), ' ');
    tell_(when + "lane " + std::to_string(lane) + "  " + text);
  }

  listener tell_;
  const carve* metadata_ = nullptr;
  memory_range pool_;
  std::uint64_t steps_ = 0;
};

}  // namespace quarry
