// SPDX-License-Identifier: Apache-2.0
#include "consumer.hpp"

std::uint32_t served_in_other_unit(const quarry::heap<>& heap) {
  quarry::simt::array<std::uint32_t, quarry::default_backend> served(1);
  served.fill_zero();
  const quarry::heap_ref<> ref = heap.ref();
  std::uint32_t* count = served.data();
  quarry::launch<quarry::default_backend>({blocks, threads},
                                          [=] QUARRY_DEVICE { use(ref, count); });
  return served.to_host()[0];
}
