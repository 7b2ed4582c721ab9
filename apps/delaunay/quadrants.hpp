// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quadrants: a quadtree over a square, and the assignment of its nodes to workers (Lyberis et al.
/// 2012, Figure 5).
///
///   0 | 1     level 1; the four children of part n have the numbers 4n ... 4n + 3 (Morton order),
///   --+--     so the descendants of a part on any lower level are consecutive
///   2 | 3
///
/// In stage s each part of level s, a block, belongs to one of 4^s workers. A block consists of
/// four parts of level s + 1, the sub-quadrants. The sub-quadrants rotate: the window of 2 x 2
/// sub-quadrants that a worker holds moves by one sub-quadrant at a time, and wraps around at the
/// edge:
///
///   home      right     down      left      up          window at (2x, 2y) - offset
///   (0,0) ->  (1,0) ->  (1,1) ->  (0,1) ->  (0,0)       every 2 x 2 neighbourhood is held once
///
/// The leaves are the sub-quadrants of the last stage: four per worker.

#include <quarry/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

namespace quarry::apps {

/// Returns the Morton code of (x, y): the bits of x and y interleaved.
constexpr std::uint64_t interleave_bits(std::uint32_t x, std::uint32_t y) {
  const auto spread = [](std::uint64_t v) {
    v = (v | v << 16) & 0x0000ffff0000ffff;
    v = (v | v << 8) & 0x00ff00ff00ff00ff;
    v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
    v = (v | v << 2) & 0x3333333333333333;
    return (v | v << 1) & 0x5555555555555555;
  };
  return spread(x) | spread(y) << 1;
}

struct cell_position {
  unsigned x = 0;
  unsigned y = 0;
  friend bool operator==(const cell_position&, const cell_position&) = default;
};
constexpr unsigned morton_code(cell_position p) {
  return static_cast<unsigned>(interleave_bits(p.x, p.y));
}
constexpr cell_position morton_position(unsigned number) {
  cell_position p;
  for (unsigned bit = 0; bit < 16; ++bit) {
    p.x |= (number >> 2 * bit & 1) << bit;
    p.y |= (number >> (2 * bit + 1) & 1) << bit;
  }
  return p;
}

/// The offsets of the window in the order of the rotations. The last one restores the home
/// position.
inline constexpr std::array<cell_position, 5> window_offsets{
    {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}}};

class quadrants {
 public:
  explicit quadrants(unsigned workers) {
    while (1u << 2 * last_stage_ < workers) ++last_stage_;
    if (1u << 2 * last_stage_ != workers || workers > 4096)
      throw error("Delaunay: the number of workers must be a power of four, at most 4096");
  }

  unsigned last_stage() const { return last_stage_; }
  unsigned leaf_level() const { return last_stage_ + 1; }
  unsigned leaves() const { return 1u << 2 * leaf_level(); }

  /// Returns the worker of a block. The numbers of the workers of a stage are spread evenly, so
  /// that in the next stage the children of worker w's block go to w and the workers that follow w.
  unsigned worker_of(unsigned stage, unsigned block) const {
    return block << 2 * (last_stage_ - stage);
  }
  unsigned block_of(unsigned stage, unsigned worker) const {
    return worker >> 2 * (last_stage_ - stage);
  }
  bool participates(unsigned stage, unsigned worker) const {
    return worker_of(stage, block_of(stage, worker)) == worker;
  }

  /// The leaves of a part: [first, first + count).
  struct leaf_run {
    unsigned first, count;
  };
  leaf_run leaves_of(unsigned level, unsigned part) const {
    const unsigned shift = 2 * (leaf_level() - level);
    return {part << shift, 1u << shift};
  }

  /// Returns the sub-quadrants in the window of a block, in ascending order.
  static std::vector<unsigned> window(unsigned stage, unsigned block, cell_position offset) {
    const unsigned wide = 2u << stage;
    const cell_position at = morton_position(block);
    std::vector<unsigned> parts;
    for (unsigned i = 0; i < 4; ++i)
      parts.push_back(morton_code({(2 * at.x + i % 2 + wide - offset.x) % wide,
                                   (2 * at.y + i / 2 + wide - offset.y) % wide}));
    std::sort(parts.begin(), parts.end());
    return parts;
  }

  /// The transfers of one block when the window moves.
  struct rotation {
    unsigned to, from;  // neighbouring blocks
    std::vector<unsigned> sent, received;
    bool sends_first;  // every second block of a ring, to avoid deadlock
  };
  static rotation rotate(unsigned stage, unsigned block, cell_position before,
                         cell_position after) {
    const unsigned wide = 1u << stage;
    const cell_position at = morton_position(block);
    const cell_position step{after.x - before.x + wide, after.y - before.y + wide};
    rotation r;
    r.to = morton_code({(at.x + step.x) % wide, (at.y + step.y) % wide});
    r.from = morton_code({(at.x + 2 * wide - step.x) % wide, (at.y + 2 * wide - step.y) % wide});
    const std::vector<unsigned> old = window(stage, block, before),
                                now = window(stage, block, after);
    std::set_difference(old.begin(), old.end(), now.begin(), now.end(), std::back_inserter(r.sent));
    std::set_difference(now.begin(), now.end(), old.begin(), old.end(),
                        std::back_inserter(r.received));
    r.sends_first = (step.x % wide != 0 ? at.x : at.y) % 2 == 0;
    return r;
  }

 private:
  unsigned last_stage_ = 0;
};

}  // namespace quarry::apps
