// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads a PLY file (Turk 1994): a text header that describes the elements, then the elements as
/// text or binary data.
///
///   ply
///   format ascii 1.0 | binary_little_endian 1.0 | binary_big_endian 1.0
///   element vertex 8                       the number of elements …
///   property float x                       … and the values of each element, in this order
///   element face 6
///   property list uchar int vertex_indices      a list: its length, then its items
///   end_header
///
/// The reader uses x, y and z of `vertex` and the list `vertex_indices` or `vertex_index` of
/// `face`, in any numeric type, and ignores other properties and elements. Errors name the line, or
/// the number of the element in binary data. docs/dependencies.md explains why no library is used.

#include "apps/scene/number.hpp"
#include "apps/scene/scene.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <istream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::apps {

enum class ply_type : std::uint8_t { i8, u8, i16, u16, i32, u32, f32, f64 };

struct ply_property {
  std::string name;
  ply_type type = ply_type::f32;
  bool list = false;
  ply_type length_type = ply_type::u8;  // of a list's length
};

struct ply_element {
  std::string name;
  std::uint64_t count = 0;
  std::vector<ply_property> properties;
};

class ply_reader {
 public:
  ply_reader(std::istream& in, std::string name) : in_(&in) { scene_.name = std::move(name); }

  scene read() {
    read_header();
    for (const ply_element& e : elements_) read_element(e);
    expect_end();
    check_scene(scene_);
    return std::move(scene_);
  }

 private:
  enum class form : std::uint8_t { text, little, big };

  [[noreturn]] void fail(const std::string& why) const {
    throw scene_error(scene_.name + ":" + place_ + why);
  }

  // ---- header ----------------------------------------------------------------------------------

  std::string next_line() {
    std::string line;
    place_ = std::to_string(++line_) + ": ";
    if (!std::getline(*in_, line)) fail("unexpected end of file");
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
  }

  void read_header() {
    if (next_line() != "ply") fail("the first line of a PLY file must be 'ply'");
    bool has_format = false;
    for (;;) {
      std::istringstream words(next_line());
      std::string kind;
      words >> kind;
      if (kind == "end_header") break;
      if (kind.empty() || kind == "comment" || kind == "obj_info") continue;
      if (kind == "format") {
        read_format(words), has_format = true;
      } else if (kind == "element") {
        ply_element e;
        std::string count;
        words >> e.name >> count;
        const char* const end = count.data() + count.size();
        const auto [read, problem] = std::from_chars(count.data(), end, e.count);
        if (problem != std::errc() || read != end || has_more(words))
          fail("expected 'element NAME COUNT'");
        elements_.push_back(std::move(e));
      } else if (kind == "property") {
        read_property(words);
      } else {
        fail("'" + kind + "' is not a keyword of a PLY header");
      }
    }
    if (!has_format) fail("the header has no format");
    for (const ply_element& e : elements_)
      if (e.properties.empty() && e.count != 0)
        fail("element " + e.name + " has no properties, but " + std::to_string(e.count) +
             " entries");
  }

  static bool has_more(std::istream& words) {
    std::string more;
    return static_cast<bool>(words >> more);
  }

  void read_format(std::istream& words) {
    std::string name;
    words >> name;
    if (name == "ascii") {
      form_ = form::text;
    } else if (name == "binary_little_endian") {
      form_ = form::little;
    } else if (name == "binary_big_endian") {
      form_ = form::big;
    } else {
      fail("format '" + name + "' is not ascii, binary_little_endian or binary_big_endian");
    }
    std::string version;
    words >> version;
    if (version != "1.0" || has_more(words))
      fail("version '" + version + "' of the format is not 1.0");
  }

  ply_type read_type(std::istream& words) const {
    static constexpr std::string_view names[][2] = {
        {"char", "int8"}, {"uchar", "uint8"}, {"short", "int16"},   {"ushort", "uint16"},
        {"int", "int32"}, {"uint", "uint32"}, {"float", "float32"}, {"double", "float64"}};
    std::string name;
    words >> name;
    for (std::size_t i = 0; i < std::size(names); ++i)
      if (name == names[i][0] || name == names[i][1]) return static_cast<ply_type>(i);
    fail("'" + name + "' is not a PLY type");
  }

  void read_property(std::istream& words) {
    if (elements_.empty()) fail("property before the first element");
    ply_property p;
    const auto before = words.tellg();
    std::string first;
    words >> first;
    p.list = first == "list";
    if (p.list) {
      p.length_type = read_type(words);
      if (p.length_type >= ply_type::f32) fail("the length of a list must have an integer type");
    } else {
      words.seekg(before);
    }
    p.type = read_type(words);
    if (!(words >> p.name)) fail("property without a name");
    if (has_more(words)) fail("words follow the name of the property");
    elements_.back().properties.push_back(std::move(p));
  }

  // ---- elements --------------------------------------------------------------------------------

  void read_element(const ply_element& e) {
    const bool points = e.name == "vertex";
    const bool faces = e.name == "face";
    if (points) check_has(e, {"x", "y", "z"}, false);
    if (faces) check_has(e, {"vertex_indices", "vertex_index"}, true, 1);
    for (std::uint64_t i = 0; i < e.count; ++i) {
      begin_element(e, i);
      scene_point p;
      for (const ply_property& property : e.properties) {
        const bool indices = faces && property.list && is_index_list(property.name);
        const double value = read_values(property, indices);
        if (!points || property.list) continue;
        if (property.name == "x") p.x = to_float(value);
        if (property.name == "y") p.y = to_float(value);
        if (property.name == "z") p.z = to_float(value);
      }
      if (points) scene_.points.push_back(p);
      if (faces) add_face();
      if (form_ == form::text && rest_.find_first_not_of(" \t") != std::string_view::npos)
        fail("the line has too many numbers");
    }
    has_points_ = has_points_ || points;
  }

  void expect_end() {
    if (form_ == form::text) {
      for (std::string line; std::getline(*in_, line);) {
        place_ = std::to_string(++line_) + ": ";
        if (line.find_first_not_of(" \t\r") != std::string::npos)
          fail("text follows the last element");
      }
    } else if (char next = 0; in_->get(next)) {
      place_ = " ";
      fail("bytes follow the last element");
    }
  }

  static bool is_index_list(std::string_view name) {
    return name == "vertex_indices" || name == "vertex_index";
  }

  /// Fails unless the element has all of the named properties, or at least `enough` of them, all as
  /// lists or none.
  void check_has(const ply_element& e, const std::vector<std::string_view>& names, bool as_lists,
                 std::size_t enough = 0) {
    std::size_t found = 0;
    place_ = " ";
    for (const ply_property& p : e.properties) {
      if (std::find(names.begin(), names.end(), p.name) == names.end()) continue;
      if (p.list != as_lists)
        fail("property " + p.name + " of element " + e.name +
             (as_lists ? " is not a list" : " is a list"));
      ++found;
    }
    if (found >= (enough == 0 ? names.size() : enough)) return;
    std::string text;
    for (const std::string_view name : names) text += " " + std::string(name);
    fail("element " + e.name + " lacks one of the properties" + text);
  }

  void begin_element(const ply_element& e, std::uint64_t number) {
    corners_.clear();
    if (form_ == form::text) {
      do {
        text_ = next_line();
      } while (text_.find_first_not_of(" \t") == std::string::npos);
      rest_ = text_;
    } else {
      place_ =
          " " + e.name + " " + std::to_string(number + 1) + " of " + std::to_string(e.count) + ": ";
    }
  }

  /// Reads a property. Returns its last value. Appends the items of a list to corners_ if `keep`.
  double read_values(const ply_property& p, bool keep) {
    if (!p.list) return read_number(p.type);
    const double length = read_number(p.length_type);
    if (length < 0)
      fail("list length " + std::to_string(static_cast<std::int64_t>(length)) + " is negative");
    double value = 0;
    for (auto left = static_cast<std::uint64_t>(length); left != 0; --left) {
      value = read_number(p.type);
      if (keep) corners_.push_back(corner(value));
    }
    return value;
  }

  std::uint32_t corner(double value) const {
    if (value >= 0 && value < 4294967296.0 && value == std::floor(value))
      return static_cast<std::uint32_t>(value);
    fail(std::to_string(value) + " is not a point index");
  }

  void add_face() {
    if (corners_.size() < 3) fail("a face needs at least three corners");
    // Faces may precede the points; check_scene() then checks the indices.
    for (const std::uint32_t c : corners_)
      if (has_points_ && c >= scene_.points.size())
        fail("point index " + std::to_string(c) + " is out of range; the file has " +
             std::to_string(scene_.points.size()) + " points, numbered from 0");
    scene_.add_polygon(corners_);
  }

  double read_number(ply_type type) {
    if (form_ == form::text) return read_text(type);
    switch (type) {
      case ply_type::i8: return read_bytes<std::int8_t>();
      case ply_type::u8: return read_bytes<std::uint8_t>();
      case ply_type::i16: return read_bytes<std::int16_t>();
      case ply_type::u16: return read_bytes<std::uint16_t>();
      case ply_type::i32: return read_bytes<std::int32_t>();
      case ply_type::u32: return read_bytes<std::uint32_t>();
      case ply_type::f32: return static_cast<double>(read_bytes<float>());
      case ply_type::f64: return read_bytes<double>();
    }
    return 0;
  }

  /// Whether a value of an integer type can be `value`.
  static bool fits(ply_type type, double value) {
    static constexpr double min[] = {-128, 0, -32768, 0, -2147483648.0, 0};
    static constexpr double max[] = {127, 255, 32767, 65535, 2147483647.0, 4294967295.0};
    const auto i = static_cast<std::size_t>(type);
    return i >= std::size(min) ||
           (value == std::floor(value) && value >= min[i] && value <= max[i]);
  }

  double read_text(ply_type type) {
    const std::size_t begin = std::min(rest_.find_first_not_of(" \t"), rest_.size());
    const std::size_t end = std::min(rest_.find_first_of(" \t", begin), rest_.size());
    if (begin == end) fail("the line has too few numbers");
    const std::string_view word = rest_.substr(begin, end - begin);
    const std::optional<double> value = parse_number(word);
    if (!value) fail("'" + std::string(word) + "' is not a number");
    if (!fits(type, *value))
      fail("'" + std::string(word) + "' is not a number of the property's type");
    rest_.remove_prefix(end);
    return *value;
  }

  template <class T>
  T read_bytes() {
    char bytes[sizeof(T)];
    if (!in_->read(bytes, sizeof bytes)) fail("unexpected end of file");
    if ((form_ == form::big) != (std::endian::native == std::endian::big))
      std::reverse(std::begin(bytes), std::end(bytes));
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  std::istream* in_;
  scene scene_;
  std::vector<ply_element> elements_;
  form form_ = form::text;
  bool has_points_ = false;  // the points have been read
  std::uint64_t line_ = 0;
  std::string place_;  // position for messages: "12: " or " face 3 of 10: "
  std::string text_;
  std::string_view rest_;
  std::vector<std::uint32_t> corners_;
};

inline scene read_ply(std::istream& in, const std::string& name) {
  return ply_reader(in, name).read();
}

}  // namespace quarry::apps
