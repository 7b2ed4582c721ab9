// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: replay tokens. A token that is accepted has one text form.
#include "fuzz/fuzz.hpp"

#include <quarry/check/trial.hpp>

namespace quarry::fuzz::token {
namespace {

trial read(std::string_view text, bool& valid) {
  try {
    valid = true;
    return trial::from_token(text);
  } catch (const error&) {
    valid = false;
    return {};
  }
}

void run(input bytes) {
  bool valid = false;
  const trial t = read(text_of(bytes), valid);
  if (!valid) return;
  const std::string text = t.to_token();
  const trial again = read(text, valid);
  require(valid, "to_token() is not a token: " + text);
  require(again.to_token() == text, "a token changes when it is read: " + text);
}

std::vector<std::string> seeds() {
  return {"1-s2a-l8-b2-o4-m1024-p8-r2a-x50000", "1-s2a-l8-b2-o4-m1024-p8-d7f-c3-e412-x50000-k0501",
          "1-s1-l1-b1-o1-m64-p0-w0-x1"};
}

}  // namespace
}  // namespace quarry::fuzz::token

QUARRY_FUZZ_TARGET(token, quarry::fuzz::token::run, quarry::fuzz::token::seeds, 20000);
