// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quadrants: a square cut into four, those into four, and so on; and which worker has which of
/// them (Lyberis et al. 2012, Figure 5).
///
///   0 | 1     level 1; the four parts of part n have the numbers 4n ... 4n + 3 on the next level,
///   --+--     so a part's parts on any lower level follow each other
///   2 | 3
///
/// In stage s the parts of level s, the blocks, belong to 4^s workers. Each consists of four parts
/// of level s + 1, the sub-quadrants, and these rotate: seen from a worker, its window of two by
/// two sub-quadrants moves by one, and around the edge of the square:
///
///   home      right     down      left      up          window at (2x, 2y) - offset
///   (0,0) ->  (1,0) ->  (1,1) ->  (0,1) ->  (0,0)       so every two by two neighbours meet once
///
/// The leaves are the sub-quadrants of the last stage: four for each worker.

#include <quarry/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

namespace quarry::apps {

/// The bits of x and y in turn: near numbers are near places.
constexpr std::uint64_t interleave(std::uint32_t x, std::uint32_t y) {
  const auto spread = [](std::uint64_t v) {
    v = (v | v << 16) & 0x0000ffff0000ffff;
    v = (v | v << 8) & 0x00ff00ff00ff00ff;
    v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
    v = (v | v << 2) & 0x3333333333333333;
    return (v | v << 1) & 0x5555555555555555;
  };
  return spread(x) | spread(y) << 1;
}

struct grid_place {
  unsigned x = 0;
  unsigned y = 0;
  friend bool operator==(const grid_place&, const grid_place&) = default;
};
constexpr unsigned number_at(grid_place p) { return static_cast<unsigned>(interleave(p.x, p.y)); }
constexpr grid_place place_of(unsigned number) {
  grid_place p;
  for (unsigned bit = 0; bit < 16; ++bit) {
    p.x |= (number >> 2 * bit & 1) << bit;
    p.y |= (number >> (2 * bit + 1) & 1) << bit;
  }
  return p;
}

/// The offsets of the window, in the order of the rotations; the last brings all home.
inline constexpr std::array<grid_place, 5> window_offsets{{{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}}};

class quadrants {
 public:
  explicit quadrants(unsigned workers) {
    while (1u << 2 * last_stage_ < workers) ++last_stage_;
    if (1u << 2 * last_stage_ != workers || workers > 4096)
      throw error("the quadrants need a power of four of workers, 4096 at most");
  }

  unsigned last_stage() const { return last_stage_; }
  unsigned leaf_level() const { return last_stage_ + 1; }
  unsigned leaves() const { return 1u << 2 * leaf_level(); }

  /// Blocks belong to workers far from each other in number: the parts of worker w's block go to w
  /// and its followers.
  unsigned worker_of(unsigned stage, unsigned block) const {
    return block << 2 * (last_stage_ - stage);
  }
  unsigned block_of(unsigned stage, unsigned worker) const {
    return worker >> 2 * (last_stage_ - stage);
  }
  bool takes_part(unsigned stage, unsigned worker) const {
    return worker_of(stage, block_of(stage, worker)) == worker;
  }

  /// The leaves of a part: from `first` on, `count` of them.
  struct leaf_run {
    unsigned first, count;
  };
  leaf_run leaves_of(unsigned level, unsigned part) const {
    const unsigned shift = 2 * (leaf_level() - level);
    return {part << shift, 1u << shift};
  }

  /// The sub-quadrants in a block's window, by number.
  static std::vector<unsigned> window(unsigned stage, unsigned block, grid_place offset) {
    const unsigned wide = 2u << stage;
    const grid_place at = place_of(block);
    std::vector<unsigned> parts;
    for (unsigned i = 0; i < 4; ++i)
      parts.push_back(number_at({(2 * at.x + i % 2 + wide - offset.x) % wide,
                                 (2 * at.y + i / 2 + wide - offset.y) % wide}));
    std::sort(parts.begin(), parts.end());
    return parts;
  }

  /// What one block does when the window moves.
  struct rotation {
    unsigned to, from;  // blocks
    std::vector<unsigned> given, taken;
    bool gives_first;  // in a ring every second one does, so that none waits for itself
  };
  static rotation rotate(unsigned stage, unsigned block, grid_place before, grid_place after) {
    const unsigned wide = 1u << stage;
    const grid_place at = place_of(block);
    const grid_place step{after.x - before.x + wide, after.y - before.y + wide};
    rotation r;
    r.to = number_at({(at.x + step.x) % wide, (at.y + step.y) % wide});
    r.from = number_at({(at.x + 2 * wide - step.x) % wide, (at.y + 2 * wide - step.y) % wide});
    const std::vector<unsigned> old = window(stage, block, before),
                                now = window(stage, block, after);
    std::set_difference(old.begin(), old.end(), now.begin(), now.end(),
                        std::back_inserter(r.given));
    std::set_difference(now.begin(), now.end(), old.begin(), old.end(),
                        std::back_inserter(r.taken));
    r.gives_first = (step.x % wide != 0 ? at.x : at.y) % 2 == 0;
    return r;
  }

 private:
  unsigned last_stage_ = 0;
};

}  // namespace quarry::apps
