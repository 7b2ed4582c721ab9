// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Regions in one process: arenas with individual free, in a tree; packing; snapshots.
/// Programs link quarry::region.

#include <quarry/core/config.hpp>  // first: it reports compilers without C++20

#include <quarry/region/handle.hpp>
#include <quarry/region/packing.hpp>
#include <quarry/region/snapshot.hpp>
#include <quarry/region/tree.hpp>
