// SPDX-License-Identifier: Apache-2.0
/// libFuzzer: a slab pool against a map of its objects. clang++ -fsanitize=fuzzer,address,undefined
#include "region/pool_model.hpp"

#include <cstddef>
#include <cstdio>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quarry;
  static constexpr slab_geometry tiny{1024, 65536, 16};
  if (size == 0) return 0;
  const std::span<const std::uint8_t> script(data + 1, size - 1);
  const bytes room(std::uint64_t{1} << (20 + data[0] % 4));
  const std::string fault = data[0] % 8 < 4 ? testing::pool_model<>(room).run(script)
                                            : testing::pool_model<tiny>(room).run(script);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
