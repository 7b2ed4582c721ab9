// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Regions in one process: hierarchical lifetimes, compact memory, packing, snapshots.

#include <quarry/region/packing.hpp>
#include <quarry/region/region_handle.hpp>
#include <quarry/region/region_tree.hpp>
#include <quarry/region/snapshot.hpp>
