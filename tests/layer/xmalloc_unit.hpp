// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The other translation unit of xmalloc_test.

#include <quarry/simt/array.hpp>

namespace quarry::testing {

/// Every element is what a lane got, or what it frees; 512 lanes.
void malloc_in_the_other_unit(simt::array<void*, default_backend>& blocks);
void free_in_the_other_unit(simt::array<void*, default_backend>& blocks);

}  // namespace quarry::testing
