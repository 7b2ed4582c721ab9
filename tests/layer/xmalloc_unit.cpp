// SPDX-License-Identifier: Apache-2.0
#include "layer/xmalloc_unit.hpp"

#include <quarry/layer/xmc.hpp>

namespace quarry::testing {

namespace {
struct malloc_there {
  void** out;
  QUARRY_DEVICE void operator()() const { out[simt::global_thread()] = xmcMalloc(64); }
};
struct free_there {
  void** in;
  QUARRY_DEVICE void operator()() const { xmcFree(in[simt::global_thread()]); }
};
}  // namespace

void malloc_in_the_other_unit(simt::array<void*, default_backend>& blocks) {
  launch<default_backend>({2, 256}, malloc_there{blocks.data()});
}
void free_in_the_other_unit(simt::array<void*, default_backend>& blocks) {
  launch<default_backend>({2, 256}, free_there{blocks.data()});
}

}  // namespace quarry::testing
