// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The other translation unit of drop_in_test.

#include <quarry/simt/array.hpp>

namespace quarry::testing {

/// 256 lanes free what is there, and put there what malloc gives them.
void replace_in_the_other_unit(simt::array<void*, default_backend>& blocks);

}  // namespace quarry::testing
