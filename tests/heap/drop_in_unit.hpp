// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The second translation unit of drop_in_test.

#include <quarry/simt/array.hpp>

namespace quarry::testing {

/// 256 lanes free the blocks of the array and replace them with new ones.
void replace_in_second_unit(simt::array<void*, default_backend>& blocks);

}  // namespace quarry::testing
