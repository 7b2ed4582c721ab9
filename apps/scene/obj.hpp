// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads the points and faces of a Wavefront OBJ file and ignores all other statements.
///
///   v x y z                 a point
///   f 1 2/7 3//9 -1         a face: point indices from 1; negative: from the last point back
///   \ at the end of a line  continues the statement on the next line
///
/// Errors name the file and the line. docs/dependencies.md explains why no library is used.

#include "apps/scene/number.hpp"
#include "apps/scene/scene.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quarry::apps {

class obj_reader {
 public:
  obj_reader(std::istream& in, std::string name) : in_(&in) { scene_.name = std::move(name); }

  scene read() {
    for (std::string line; next_line(line);) {
      rest_ = line;
      const std::string_view kind = word();
      if (kind == "v") read_point();
      if (kind == "f") read_face();
    }
    check_scene(scene_);
    return std::move(scene_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw scene_error(scene_.name + ":" + std::to_string(line_) + ": " + why);
  }

  /// Reads a line and its continuation lines. line_ is the number of the last one.
  bool next_line(std::string& line) {
    line.clear();
    for (std::string part; std::getline(*in_, part);) {
      if (++line_ == 1 && part.starts_with("\xef\xbb\xbf")) part.erase(0, 3);  // byte-order mark
      while (!part.empty() && (part.back() == '\r' || part.back() == ' ')) part.pop_back();
      const bool continues = !part.empty() && part.back() == '\\';
      if (continues) part.back() = ' ';
      line += part;
      if (!continues) return true;
    }
    return !line.empty();
  }

  /// Returns the next word of the line; empty at the end of the line.
  std::string_view word() {
    const std::size_t begin = std::min(rest_.find_first_not_of(" \t"), rest_.size());
    const std::size_t end = std::min(rest_.find_first_of(" \t", begin), rest_.size());
    const std::string_view found = rest_.substr(begin, end - begin);
    rest_.remove_prefix(end);
    return found;
  }

  float number(std::string_view text) const {
    const std::optional<double> value = parse_number(text);
    if (!value || std::isinf(to_float(*value))) fail("'" + std::string(text) + "' is not a number");
    return to_float(*value);
  }

  void read_point() {
    std::string_view text[3];
    for (std::string_view& t : text)
      if ((t = word()).empty()) fail("a point needs three coordinates");
    scene_.points.push_back({number(text[0]), number(text[1]), number(text[2])});
  }

  std::uint32_t corner(std::string_view text) const {
    const std::string_view first = text.substr(0, text.find('/'));
    std::int64_t n = 0;
    const auto [end, problem] = std::from_chars(first.data(), first.data() + first.size(), n);
    if (problem != std::errc() || end != first.data() + first.size())
      fail("'" + std::string(text) + "' is not a point index");
    const auto count = static_cast<std::int64_t>(scene_.points.size());
    const std::int64_t at = n < 0 ? count + n : n - 1;
    if (n == 0 || at < 0 || at >= count)
      fail("point index " + std::to_string(n) + " is out of range; the file has " +
           std::to_string(count) + " points before this line");
    return static_cast<std::uint32_t>(at);
  }

  void read_face() {
    corners_.clear();
    for (std::string_view text = word(); !text.empty(); text = word())
      corners_.push_back(corner(text));
    if (corners_.size() < 3) fail("a face needs at least three corners");
    scene_.add_polygon(corners_);
  }

  std::istream* in_;
  scene scene_;
  std::uint64_t line_ = 0;
  std::string_view rest_;
  std::vector<std::uint32_t> corners_;
};

inline scene read_obj(std::istream& in, const std::string& name) {
  return obj_reader(in, name).read();
}

}  // namespace quarry::apps
