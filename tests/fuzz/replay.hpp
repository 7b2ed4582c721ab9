// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs a fuzz target without libFuzzer: on its seeds, on its corpus, and on mutations of both that
/// depend on fixed seeds alone.

#include "fuzz/fuzz.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>

namespace quarry::fuzz {

using random_bits = std::mt19937_64;

inline std::vector<std::string> corpus_of(const target& t) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = std::filesystem::path(QUARRY_FUZZ_CORPUS) / t.name;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> all = t.seeds();
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return all;
}

/// Numbers at which readers of integers change their behaviour.
inline std::uint64_t extreme_number(random_bits& random) {
  const std::uint64_t power = std::uint64_t{1} << random() % 64;
  return power - random() % 3 + 1;
}

/// Changes one place of the text: bits, bytes, integers of 1 to 8 bytes, decimal numbers, or parts
/// of `other`.
inline void mutate(std::string& text, const std::string& other, random_bits& random) {
  const std::size_t at = random() % (text.size() + 1);
  const std::size_t length = std::min(text.size() - at, std::size_t{1} << random() % 6);
  switch (random() % 7) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << random() % 8);
      break;
    case 1: text.replace(at, length, std::string(random() % 9, static_cast<char>(random()))); break;
    case 2: text.erase(at, length); break;
    case 3: text.insert(at, text.substr(random() % (text.size() + 1), 1 + random() % 64)); break;
    case 4: {
      const std::uint64_t number = extreme_number(random);
      const std::size_t size = std::min<std::size_t>(text.size() - at, 1u << random() % 4);
      std::memcpy(text.data() + at, &number, size);
      break;
    }
    case 5: {
      const std::size_t digit = std::min(text.find_first_of("0123456789", at), text.size());
      const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
      text.replace(digit, end - digit, std::to_string(extreme_number(random)));
      break;
    }
    default: text.replace(at, length, other, random() % (other.size() + 1), 1 + random() % 64);
  }
}

/// The first bytes of an input, as a string literal.
inline std::string literal(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 2000)) {
    constexpr const char* digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 127 && c != '\\')
      out += c;
    else
      ((out += "\\x") += digits[byte >> 4]) += digits[byte & 15];
  }
  return '"' + out + (text.size() > 2000 ? "\"..." : "\"");
}

/// Returns whether the target accepts the text.
inline bool accepts(const target& t, const std::string& text) {
  try {
    t.run({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    return true;
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << "\ninput: " << literal(text);
    return false;
  }
}

inline void replay(const target& t) {
  const std::vector<std::string> all = corpus_of(t);
  ASSERT_FALSE(all.empty()) << "no corpus, and no seeds";
  for (const std::string& text : all)
    if (!accepts(t, text)) return;
  random_bits random(1);
  for (unsigned i = 0; i < t.mutations; ++i) {
    std::string text = all[random() % all.size()];
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n)
      mutate(text, all[random() % all.size()], random);
    if (!accepts(t, text)) return;
  }
}

}  // namespace quarry::fuzz
