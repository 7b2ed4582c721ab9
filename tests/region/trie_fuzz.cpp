// SPDX-License-Identifier: Apache-2.0
/// libFuzzer: trie against std::map. clang++ -fsanitize=fuzzer,address,undefined
#include "region/trie_model.hpp"

#include <cstddef>
#include <cstdio>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> script(data + 1, size - 1);
  const std::string fault = data[0] % 2 == 0 ? quarry::testing::trie_model<0, 33>().run(script)
                                             : quarry::testing::trie_model<12, 36>().run(script);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
