// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Regions in one process: hierarchical lifetimes, compact memory, packing, snapshots.

#include <quarry/region/handle.hpp>
#include <quarry/region/packing.hpp>
#include <quarry/region/snapshot.hpp>
#include <quarry/region/tree.hpp>
