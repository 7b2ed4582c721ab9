// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/text.hpp>
#include <quarry/check/trace.hpp>

#include <algorithm>

namespace quarry {

void trace::begin(const carve& metadata, memory_range pool) {
  metadata_ = &metadata;
  pool_ = pool;
  steps_ = 0;
}

void trace::write(const std::string& text) const {
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t last = std::min(text.find('\n', first), text.size());
    write_(text.substr(first, last - first));
    first = last + 1;
  }
}

void trace::malloc_called(std::uint64_t lane, std::uint64_t n) const {
  write_of_lane(lane, "calls malloc(" + std::to_string(n) + ")");
}

void trace::malloc_returned(std::uint64_t lane, const void* p, std::uint64_t number) const {
  std::string text = "gets " + address_text(pool_, p);
  if (p != nullptr) text += " (#" + std::to_string(number) + ")";
  write_of_lane(lane, text);
}

void trace::free_called(std::uint64_t lane, const void* p, std::uint64_t number) const {
  write_of_lane(lane, "frees " + address_text(pool_, p) + " (#" + std::to_string(number) + ")");
}

void trace::step(const simt::step& s) {
  std::string text = s.what + (" " + name_of(s.where)) + ": " + to_hex(s.before);
  if (s.after != s.before) text += " -> " + to_hex(s.after);
  write_line("step " + std::to_string(++steps_), s.thread, text);
}

std::string trace::name_of(const void* where) const {
  std::string name = metadata_ != nullptr ? metadata_->name_of(where) : std::string{};
  return name.empty() ? address_text(pool_, where) : name;
}

void trace::write_of_lane(std::uint64_t lane, const std::string& text) const {
  const simt::host_section hidden;
  write_line("", lane, text);
}

void trace::write_line(std::string when, std::uint64_t lane, const std::string& text) const {
  when.resize(std::max<std::size_t>(when.size(), 10), ' ');
  write_(when + "lane " + std::to_string(lane) + "  " + text);
}

}  // namespace quarry
