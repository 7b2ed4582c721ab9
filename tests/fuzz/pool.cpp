// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: the operations of a slab pool, against a map of its objects.
#include "fuzz/fuzz.hpp"
#include "region/pool_model.hpp"

namespace quarry::fuzz::pool {
namespace {

void run(input bytes) {
  static constexpr slab_geometry tiny{1024, 65536, 16};
  if (bytes.empty()) return;
  const input script = bytes.subspan(1);
  const quarry::bytes room(std::uint64_t{1} << (20 + bytes[0] % 4));
  const std::string fault = bytes[0] % 8 < 4 ? testing::pool_model<>(room).run(script)
                                             : testing::pool_model<tiny>(room).run(script);
  require(fault.empty(), fault);
}

std::vector<std::string> seeds() { return {std::string(64, '\1'), std::string(64, '\5')}; }

}  // namespace
}  // namespace quarry::fuzz::pool

QUARRY_FUZZ_TARGET(pool, quarry::fuzz::pool::run, quarry::fuzz::pool::seeds, 100);
