// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a kd-tree is made by: boxes, the planes that may split one, what a split costs, when to
/// stop.
///
/// Everything is counted in whole numbers on a grid of 2^18 steps along the scene's longest side.
/// So a split is the same whoever finds it and in whatever order: lanes, one thread, a GPU or a
/// CPU. Floating point would not do: sums depend on their order, and compilers fuse products
/// differently.
///
///   planes of a box    multiples of a power of two above its lower side, 16 to 31 of them an axis
///                      lower |···|···|···|···|·· upper      (fewer only where the grid has no more)
///   left of plane s    boxes with lower < s, and those that lie in s: lower = upper = s
///   right of plane s   boxes with upper > s: one that straddles s is on both sides, none on neither
///   cost, in steps     leaf   2 A n                  A half the surface of a box, n its triangles:
///                      split  A + 2 (A1 n1 + A2 n2)  a step down the tree costs 1, a triangle 2
///
/// The surface area heuristic (MacDonald, Booth 1990): a ray that meets a box meets a part of it
/// with a probability in proportion to its surface. Of equal costs the plane with the lower number
/// wins, then the axis x, y, z.
///
/// A node is a leaf when it has `leaf_size` triangles or fewer, when it lies `most_depth` below the
/// root, or when no split costs less than the leaf.

#include "apps/scene/scene.hpp"

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>

#include <cstdint>

namespace quarry::apps {

inline constexpr unsigned kd_grid_bits = 18;

/// Corners on the grid, three coordinates to a word: a lane loads a box at once.
class alignas(16) kd_box {
 public:
  kd_box() = default;

  QUARRY_DEVICE constexpr std::uint32_t lower(unsigned axis) const { return part(lower_, axis); }
  QUARRY_DEVICE constexpr std::uint32_t upper(unsigned axis) const { return part(upper_, axis); }
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

  QUARRY_DEVICE static constexpr std::uint32_t part(std::uint64_t word, unsigned axis) {
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

/// The planes across one axis of a box, numbered 1 … count. All lie inside it.
struct kd_planes {
  static constexpr std::uint32_t most = 31;

  std::uint32_t lower = 0;
  std::uint32_t shift = 0;
  std::uint32_t count = 0;

  QUARRY_DEVICE static constexpr kd_planes across(const kd_box& b, unsigned axis) {
    const std::uint32_t side = b.side(axis);
    if (side < 2) return {b.lower(axis), 0, 0};
    const std::uint32_t inside = side - 1;
    const std::uint32_t shift = inside <= most ? 0 : log2_floor(inside) - 4;
    return {b.lower(axis), shift, inside >> shift};
  }

  QUARRY_DEVICE constexpr std::uint32_t position(std::uint32_t number) const {
    return lower + (number << shift);
  }
  /// How many planes have the box on their right only: it is left of those with a higher number.
  QUARRY_DEVICE constexpr std::uint32_t passed(const kd_box& b, unsigned axis) const {
    return below(b.lower(axis) < b.upper(axis) ? b.lower(axis) + 1 : b.upper(axis));
  }
  /// How many planes have the box on their right.
  QUARRY_DEVICE constexpr std::uint32_t begun(const kd_box& b, unsigned axis) const {
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
// No cost wraps: the longest sides and the most triangles on both of its own.
static_assert((3ull << 2 * kd_grid_bits) < (1ull << 63) / (4ull * scene::most_triangles + 1));

struct kd_split {
  std::uint32_t axis = 3;  // 3: none is better than a leaf
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

// ---- when to stop ------------------------------------------------------------------------------

struct kd_limits {
  /// Trees over scanned meshes then have about as many lists as those of Vinkler and Havran (2014):
  /// 3 to 5 a triangle.
  static constexpr std::uint32_t usual_leaf_size = 7;

  std::uint32_t leaf_size = usual_leaf_size;
  std::uint32_t most_depth = 0;

  /// The usual depth for n triangles: 8 + 1.3 log2 n.
  static constexpr kd_limits usual(std::uint32_t triangles,
                                   std::uint32_t leaf_size = usual_leaf_size) {
    return {leaf_size, 8 + 13 * (triangles == 0 ? 0 : log2_ceil(triangles)) / 10};
  }
  QUARRY_DEVICE constexpr bool may_split(std::uint32_t triangles, std::uint32_t depth) const {
    return triangles > leaf_size && depth < most_depth;
  }
};

}  // namespace quarry::apps
