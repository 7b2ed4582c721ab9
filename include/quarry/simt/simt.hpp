// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Umbrella header of simt/: lanes, collectives, atomics, device memory and launch.

#include <quarry/simt/array.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/backend.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>
#include <quarry/simt/random.hpp>
#include <quarry/simt/reduce.hpp>
#include <quarry/simt/stream.hpp>
