// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: the operations of a trie, against std::map.
#include "fuzz/fuzz.hpp"
#include "region/trie_model.hpp"

namespace quarry::fuzz::trie {
namespace {

void run(input bytes) {
  if (bytes.empty()) return;
  const input script = bytes.subspan(1);
  const std::string fault = bytes[0] % 2 == 0 ? testing::trie_model<0, 33>().run(script)
                                              : testing::trie_model<12, 36>().run(script);
  require(fault.empty(), fault);
}

std::vector<std::string> seeds() { return {std::string(64, 'a'), std::string(64, 'b')}; }

}  // namespace
}  // namespace quarry::fuzz::trie

QUARRY_FUZZ_TARGET(trie, quarry::fuzz::trie::run, quarry::fuzz::trie::seeds, 300);
