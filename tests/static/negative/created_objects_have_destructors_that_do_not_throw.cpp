// SPDX-License-Identifier: Apache-2.0
/// A region is destroyed as a whole, so the destructors of its objects must not throw.
// expect: the destructor of T may throw
#include <quarry/region.hpp>

struct object {
#ifndef QUARRY_CONTROL
  ~object() noexcept(false) {}
#else
  ~object() {}
#endif
};

void use(quarry::region& in) { in.create<object>(); }
