// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/trial.hpp>
#include <quarry/core/error.hpp>

#include <charconv>

namespace quarry {
namespace {

void append(std::string& text, char name, std::uint64_t value, int base = 10) {
  char digits[20];
  char* const end = std::to_chars(digits, digits + sizeof digits, value, base).ptr;
  text += '-';
  text += name;
  text.append(digits, end);
}

std::string mask_to_hex(const keep_mask& keep) {
  std::string text;
  for (std::size_t i = 0; i < keep.size(); i += 4) {
    unsigned digit = 0;
    for (std::size_t k = 0; k < 4 && i + k < keep.size(); ++k) digit |= unsigned{keep[i + k]} << k;
    text += "0123456789abcdef"[digit];
  }
  return text;
}

}  // namespace

std::string trial::to_token() const {
  std::string text = "1";
  append(text, 's', seed, 16);
  append(text, 'l', bounds.lanes);
  append(text, 'b', bounds.blocks);
  append(text, 'o', bounds.operations);
  append(text, 'm', pool_bytes);
  append(text, 'p', refill_one_in);
  if (schedule.how != simt::strategy::pct) {
    append(text, schedule.how == simt::strategy::random ? 'r' : 'w', schedule.seed, 16);
  } else {
    append(text, 'd', schedule.seed, 16);
    append(text, 'c', schedule.change_points);
    append(text, 'e', schedule.expected_steps);
  }
  append(text, 'x', schedule.step_limit);
  if (!keep.empty()) text += "-k" + mask_to_hex(keep);
  return text;
}

trial trial::from_token(std::string_view token) {
  const auto bad = [&](const std::string& why) {
    return error("\"" + std::string(token) + "\" is not a replay token: " + why);
  };
  if (token.substr(0, 2) != "1-") throw bad("it does not begin with \"1-\"");
  trial t;
  t.keep.clear();
  for (std::string_view rest = token.substr(2); !rest.empty();) {
    const std::string_view field = rest.substr(0, rest.find('-'));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    if (field.size() < 2) throw bad("a field is empty");
    const char name = field[0];
    const std::string_view digits = field.substr(1);
    if (name == 'k') {
      for (const char c : digits) {
        unsigned digit = 0;
        if (std::from_chars(&c, &c + 1, digit, 16).ptr != &c + 1) throw bad("k is not hexadecimal");
        for (unsigned k = 0; k < 4; ++k) t.keep.push_back((digit >> k & 1) != 0);
      }
      continue;
    }
    const bool seeds = name == 's' || name == 'r' || name == 'w' || name == 'd';
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value, seeds ? 16 : 10);
    if (parsed.ec != std::errc{} || parsed.ptr != end)
      throw bad("\"" + std::string(field) + "\" is not a number");
    const bool counts = name == 'l' || name == 'b' || name == 'o';
    if ((counts && (value == 0 || value > 4096)) || (name == 'c' && value > 4096) ||
        (name == 'm' && (value < min_pool_bytes || value > max_pool_bytes)))
      throw bad("\"" + std::string(field) + "\" is out of range");
    const auto small = static_cast<std::uint32_t>(value);
    switch (name) {
      case 's': t.seed = value; break;
      case 'l': t.bounds.lanes = small; break;
      case 'b': t.bounds.blocks = small; break;
      case 'o': t.bounds.operations = small; break;
      case 'm': t.pool_bytes = value; break;
      case 'p': t.refill_one_in = value; break;
      case 'r':
      case 'w':
      case 'd':
        t.schedule.how = name == 'r'   ? simt::strategy::random
                         : name == 'w' ? simt::strategy::lockstep
                                       : simt::strategy::pct;
        t.schedule.seed = value;
        break;
      case 'c': t.schedule.change_points = small; break;
      case 'e': t.schedule.expected_steps = value; break;
      case 'x': t.schedule.step_limit = value; break;
      default: throw bad("no field is called \"" + std::string(1, name) + "\"");
    }
  }
  return t;
}

}  // namespace quarry
