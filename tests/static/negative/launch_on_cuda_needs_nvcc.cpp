// SPDX-License-Identifier: Apache-2.0
/// launch<cuda> needs nvcc.
// expect: needs nvcc
#include <quarry/heap.hpp>

#ifndef QUARRY_CONTROL
using where = quarry::cuda;
#else
using where = quarry::cpu;
#endif
void use() {
  quarry::launch<where>({1, 32}, [] {});
}
