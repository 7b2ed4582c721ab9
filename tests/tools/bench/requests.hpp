// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Small requests, for the tests of `quarry bench`.

#include "bench/request.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

inline bench_measurement measurement_of(std::uint64_t size, std::uint64_t lanes = 100) {
  bench_measurement c;
  c.experiment = "alloc";
  c.x_label = std::to_string(size);
  c.sizes = {size, size};
  c.lanes = lanes;
  return c;
}

inline bench_request request_of(const std::string& allocator,
                                const std::vector<std::uint64_t>& sizes) {
  bench_request r;
  r.backend = "cpu";
  r.allocator = allocator;
  r.heap_bytes = 1 << 20;
  r.repeats = 2;
  r.timeout = 60;
  for (const std::uint64_t size : sizes) r.measurements.push_back(measurement_of(size));
  return r;
}

}  // namespace quarry::tool
