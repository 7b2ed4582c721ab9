// SPDX-License-Identifier: Apache-2.0
#include "heap/drop_in_unit.hpp"

#include <quarry/drop_in.hpp>

namespace quarry::testing {

namespace {
struct replace {
  void** blocks;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::free, quarry::drop_in::malloc;
    void*& mine = blocks[simt::global_thread()];
    free(mine);
    mine = malloc(100);
  }
};
}  // namespace

void replace_in_second_unit(simt::array<void*, default_backend>& blocks) {
  launch<default_backend>({1, 256}, replace{blocks.data()});
}

}  // namespace quarry::testing
