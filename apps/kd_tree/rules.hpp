// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The construction rules of a kd-tree: boxes, candidate planes, split costs, termination.
///
/// All quantities are integers on a grid of 2^18 steps along the longest side of the scene. Hence
/// the best split does not depend on the order of evaluation, and a warp, a single thread, a GPU
/// and a CPU find the same one. Floating-point sums depend on their order, and compilers contract
/// products differently.
///
///   candidate planes   lower + k 2^shift for k = 1 ... count, 16 to 31 per axis, inside the box
///                      lower |···|···|···|···|·· upper      (fewer if the side is shorter)
///   left of plane s    boxes with lower < s, and boxes that lie in s: lower = upper = s
///   right of plane s   boxes with upper > s; a box that straddles s is on both sides
///   cost               leaf   2 A n                  A: half the surface, n: number of triangles;
///                      split  A + 2 (A1 n1 + A2 n2)  a traversal step costs 1, a triangle test 2
///
/// This is the surface area heuristic (MacDonald, Booth 1990): the probability that a ray which
/// hits a box also hits a part of the box is the ratio of their surfaces. Ties are broken in favour
/// of the lower plane number, then of the axis in the order x, y, z.
///
/// A node is a leaf if it has at most `leaf_size` triangles, if its depth is `max_depth`, or if no
/// split costs less than the leaf.

#include "apps/scene/scene.hpp"

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>

#include <cstdint>

namespace quarry::apps {

inline constexpr unsigned kd_grid_bits = 18;

/// A box on the grid. Each corner is packed into 64 bits, so that a lane loads a box with one
/// 16-byte access.
class alignas(16) kd_box {
 public:
  kd_box() = default;

  QUARRY_DEVICE constexpr std::uint32_t lower(unsigned axis) const { return chunk(lower_, axis); }
  QUARRY_DEVICE constexpr std::uint32_t upper(unsigned axis) const { return chunk(upper_, axis); }
  QUARRY_DEVICE constexpr void set_lower(unsigned axis, std::uint32_t x) { put(lower_, axis, x); }
  QUARRY_DEVICE constexpr void set_upper(unsigned axis, std::uint32_t x) { put(upper_, axis, x); }
  QUARRY_DEVICE constexpr std::uint32_t side(unsigned axis) const {
    return upper(axis) - lower(axis);
  }
  friend QUARRY_DEVICE constexpr bool operator==(const kd_box& a, const kd_box& b) {
    return a.lower_ == b.lower_ && a.upper_ == b.upper_;
  }

 private:
  static constexpr unsigned bits = 21;
  static constexpr std::uint64_t mask = (1u << bits) - 1;
  static_assert(bits > kd_grid_bits);

  QUARRY_DEVICE static constexpr std::uint32_t chunk(std::uint64_t word, unsigned axis) {
    return static_cast<std::uint32_t>(word >> (bits * axis) & mask);
  }
  QUARRY_DEVICE static constexpr void put(std::uint64_t& word, unsigned axis, std::uint32_t x) {
    word = (word & ~(mask << (bits * axis))) | std::uint64_t{x} << (bits * axis);
  }

  std::uint64_t lower_ = 0;
  std::uint64_t upper_ = 0;
};
static_assert(sizeof(kd_box) == 16);

// ---- planes ------------------------------------------------------------------------------------

QUARRY_DEVICE constexpr bool goes_left(const kd_box& b, unsigned axis, std::uint32_t plane) {
  return b.lower(axis) < plane || b.upper(axis) <= plane;
}
QUARRY_DEVICE constexpr bool goes_right(const kd_box& b, unsigned axis, std::uint32_t plane) {
  return b.upper(axis) > plane;
}

/// The candidate planes of one axis of a box, numbered 1 … count.
struct kd_planes {
  static constexpr std::uint32_t max_count = 31;

  std::uint32_t lower = 0;
  std::uint32_t shift = 0;
  std::uint32_t count = 0;

  QUARRY_DEVICE static constexpr kd_planes across(const kd_box& b, unsigned axis) {
    const std::uint32_t side = b.side(axis);
    if (side < 2) return {b.lower(axis), 0, 0};
    const std::uint32_t inside = side - 1;
    const std::uint32_t shift = inside <= max_count ? 0 : log2_floor(inside) - 4;
    return {b.lower(axis), shift, inside >> shift};
  }

  QUARRY_DEVICE constexpr std::uint32_t position(std::uint32_t number) const {
    return lower + (number << shift);
  }
  /// Returns the entry bin of a box: the number of planes that are entirely below the box. The box
  /// is left of exactly the planes with a higher number.
  QUARRY_DEVICE constexpr std::uint32_t entry_bin(const kd_box& b, unsigned axis) const {
    return below(b.lower(axis) < b.upper(axis) ? b.lower(axis) + 1 : b.upper(axis));
  }
  /// Returns the exit bin of a box: the number of planes below its upper side. The box is right of
  /// exactly the planes with a number up to that.
  QUARRY_DEVICE constexpr std::uint32_t exit_bin(const kd_box& b, unsigned axis) const {
    return below(b.upper(axis));
  }

 private:
  QUARRY_DEVICE constexpr std::uint32_t below(std::uint32_t x) const {
    if (x <= lower) return 0;
    const std::uint32_t n = (x - 1 - lower) >> shift;
    return n < count ? n : count;
  }
};

// ---- costs -------------------------------------------------------------------------------------

QUARRY_DEVICE constexpr std::uint64_t half_surface(std::uint64_t x, std::uint64_t y,
                                                   std::uint64_t z) {
  return x * y + y * z + z * x;
}
QUARRY_DEVICE constexpr std::uint64_t half_surface(const kd_box& b) {
  return half_surface(b.side(0), b.side(1), b.side(2));
}

QUARRY_DEVICE constexpr std::uint64_t leaf_cost(const kd_box& b, std::uint32_t triangles) {
  return 2 * half_surface(b) * triangles;
}
QUARRY_DEVICE constexpr std::uint64_t split_cost(const kd_box& b, unsigned axis,
                                                 std::uint32_t plane, std::uint32_t left,
                                                 std::uint32_t right) {
  const std::uint64_t u = b.side((axis + 1) % 3), v = b.side((axis + 2) % 3);
  const std::uint64_t low = plane - b.lower(axis), high = b.upper(axis) - plane;
  return half_surface(b) + 2 * (half_surface(low, u, v) * left + half_surface(high, u, v) * right);
}
// The largest possible cost does not overflow: maximal sides, all triangles on both sides.
static_assert((3ull << 2 * kd_grid_bits) < (1ull << 63) / (4ull * scene::max_triangles + 1));

struct kd_split {
  std::uint32_t axis = 3;  // 3: no split is cheaper than a leaf
  std::uint32_t plane = 0;
  std::uint32_t left = 0;  // triangles
  std::uint32_t right = 0;
  QUARRY_DEVICE constexpr bool found() const { return axis < 3; }
};

QUARRY_DEVICE constexpr kd_box left_part(kd_box b, const kd_split& s) {
  b.set_upper(s.axis, s.plane);
  return b;
}
QUARRY_DEVICE constexpr kd_box right_part(kd_box b, const kd_split& s) {
  b.set_lower(s.axis, s.plane);
  return b;
}

// ---- termination -------------------------------------------------------------------------------

struct kd_limits {
  /// With this value, trees of scanned meshes have 3 to 5 lists per triangle, as in Vinkler and
  /// Havran (2014).
  static constexpr std::uint32_t default_leaf_size = 7;

  std::uint32_t leaf_size = default_leaf_size;
  std::uint32_t max_depth = 0;

  /// The limits for n triangles: the maximum depth is 8 + 1.3 log2 n.
  static constexpr kd_limits default_for(std::uint32_t triangles,
                                         std::uint32_t leaf_size = default_leaf_size) {
    return {leaf_size, 8 + 13 * (triangles == 0 ? 0 : log2_ceil(triangles)) / 10};
  }
  QUARRY_DEVICE constexpr bool may_split(std::uint32_t triangles, std::uint32_t depth) const {
    return triangles > leaf_size && depth < max_depth;
  }
};

}  // namespace quarry::apps
