// SPDX-License-Identifier: Apache-2.0
#include "consumer.hpp"

#include <cstdio>

int main() {
  using namespace quarry::literals;
  const quarry::heap<> heap(16_MiB);
  quarry::simt::array<std::uint32_t, quarry::cpu> served(1);
  served.fill_zero();
  const quarry::heap_ref<> ref = heap.ref();
  std::uint32_t* count = served.data();
  quarry::launch<quarry::cpu>({blocks, threads}, [=] { use(ref, count); });

  const std::uint32_t here = served.to_host()[0];
  const std::uint32_t there = served_in_other_unit(heap);
  std::printf("cpu: %u and %u of %u lanes served\n", here, there, blocks * threads);
  return here == blocks * threads && there == blocks * threads ? 0 : 1;
}
