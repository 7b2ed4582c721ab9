// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The second translation unit of xmalloc_test.

#include <quarry/simt/array.hpp>

namespace quarry::testing {

/// 512 lanes allocate or free one element each.
void malloc_in_the_other_unit(simt::array<void*, default_backend>& blocks);
void free_in_the_other_unit(simt::array<void*, default_backend>& blocks);

}  // namespace quarry::testing
