// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What heap<> uses where nothing is chosen.

#include <quarry/pool/slab/slab.hpp>
#include <quarry/simt/backend.hpp>

namespace quarry {

using default_allocator = slab;

}  // namespace quarry
