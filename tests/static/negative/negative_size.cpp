// SPDX-License-Identifier: Apache-2.0
/// A negative constant does not convert to bytes.
// expect: not negative|not a constant expression
#include <quarry/heap.hpp>

void use() {
#ifndef QUARRY_CONTROL
  quarry::heap<quarry::bump, quarry::cpu> heap(-1);
#else
  quarry::heap<quarry::bump, quarry::cpu> heap(4096);
#endif
}
