// SPDX-License-Identifier: Apache-2.0
#pragma once
/// codec: structs as sequences of 64-bit words.
///
///   integer, bool, enumeration   one word
///   struct                       its fields, in the order of fields()
///   vector                       the number of elements, then the elements
///
/// A struct takes part by a member function fields() that returns a tuple of references.
/// decode() accepts exactly the words that encode() produces for some value: it fails if the words
/// end early, if words are left over, or if a word is out of range for the type of its field. It
/// never reads outside the words, and allocates at most the memory that the words account for.

#include <quarry/region/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::cluster::detail {

template <class T>
concept described = requires(T& value) {
  value.fields();
};

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

/// Calls visit(field) for each field of a described struct, in order.
template <class T, class Visit>
void for_each_field(T& value, Visit visit) {
  std::apply([&](auto&... field) { (visit(field), ...); }, value.fields());
}

/// The least number of words that a value of type T takes.
template <class T>
constexpr std::size_t min_words() {
  if constexpr (described<T>)
    return []<class... Fields>(std::tuple<Fields&...>*) {
      return (std::size_t{0} + ... + min_words<Fields>());
    }(static_cast<decltype(std::declval<T&>().fields())*>(nullptr));
  else
    return 1;
}

template <class T>
void encode(const T& value, std::vector<std::uint64_t>& words) {
  if constexpr (described<T>) {
    for_each_field(value, [&](const auto& field) { encode(field, words); });
  } else if constexpr (is_vector<T>::value) {
    words.reserve(words.size() + 1 + value.size() * min_words<typename T::value_type>());
    words.push_back(value.size());
    for (const auto& element : value) encode(element, words);
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    words.push_back(static_cast<std::uint64_t>(value));
  }
}

/// Reads one value from the front of `words` and removes it from there. False: malformed.
template <class T>
bool decode_front(std::span<const std::uint64_t>& words, T& value) {
  if constexpr (described<T>) {
    bool ok = true;
    for_each_field(value, [&](auto& field) { ok = ok && decode_front(words, field); });
    return ok;
  } else if constexpr (is_vector<T>::value) {
    std::uint64_t count = 0;
    if (!decode_front(words, count)) return false;
    if (count > words.size() / min_words<typename T::value_type>()) return false;
    value.resize(count);
    for (auto& element : value)
      if (!decode_front(words, element)) return false;
    return true;
  } else {
    if (words.empty()) return false;
    const std::uint64_t word = words.front();
    words = words.subspan(1);
    if constexpr (std::is_same_v<T, bool>) {
      value = word != 0;
      return word <= 1;
    } else {
      value = static_cast<T>(word);
      if constexpr (std::is_same_v<T, region_status>) return word <= last_region_status;
      return static_cast<std::uint64_t>(value) == word;
    }
  }
}

/// The value that the words encode; nothing if they are malformed.
template <class T>
std::optional<T> decode(std::span<const std::uint64_t> words) {
  T value;
  if (!decode_front(words, value) || !words.empty()) return {};
  return value;
}

}  // namespace quarry::cluster::detail
