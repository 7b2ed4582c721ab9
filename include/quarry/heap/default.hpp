// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What heap<> uses where nothing is chosen.

#include <quarry/pool/slab.hpp>
#include <quarry/simt/machine.hpp>

namespace quarry {

using default_allocator = slab;

}  // namespace quarry
