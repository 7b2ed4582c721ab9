// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Definitions of the members of slab_pool, metadata_pool and basic_region_tree that are not
/// inline.
///
/// The library quarry::region instantiates them for default_geometry. A translation unit that uses
/// another slab_geometry includes this header, and so instantiates the templates itself.

#include <quarry/region/detail/metadata_pool_calls.hpp>
#include <quarry/region/detail/slab_pool_check.hpp>
#include <quarry/region/detail/slab_pool_slow.hpp>
#include <quarry/region/detail/tree_calls.hpp>
#include <quarry/region/detail/tree_memory.hpp>
