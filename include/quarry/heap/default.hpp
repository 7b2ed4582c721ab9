// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The default allocator of heap<> and heap_ref<>.

#include <quarry/pool/slab/slab.hpp>
#include <quarry/simt/backend.hpp>

namespace quarry {

using default_allocator = slab;

}  // namespace quarry
