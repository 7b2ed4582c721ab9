// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Lane masks: one bit per lane of a warp.

#include <quarry/core/bit_count.hpp>

#include <cstdint>

namespace quarry::simt {

/// One bit per lane of a warp.
using lane_mask = std::uint32_t;

inline constexpr unsigned warp_size = 32;
inline constexpr lane_mask full_warp = 0xffffffffu;

using quarry::highest_bit;
using quarry::lowest_bit;
using quarry::popc;

}  // namespace quarry::simt
