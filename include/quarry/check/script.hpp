// SPDX-License-Identifier: Apache-2.0
#pragma once
/// allocation_script: what every lane of a small grid asks of an allocator, drawn from a seed.
///
///   lane 0   #0 = malloc(96)   free(#3)
///   lane 1   #2 = malloc(16)   #3 = malloc(500)
///
/// A malloc is named by its number in the script. A free names a malloc, of its own lane or another; it
/// happens only if that block is live when its turn comes, so any part of a script is a script again and
/// a failing one can be made small.
///
/// Sizes: each script has a mood: tiny (1 … 64), all equal, skewed (each power of two as likely as the
/// next), large (a quarter of the pool and up), or a mixture. One request in 24 is for nothing, for
/// more than the pool, or near the end of the number range. Allocators that overwrite what they handed
/// out a round ago are asked for at most an eighth of the pool at a time, and start anywhere in it.
///
/// Shape: half of the scripts use all lanes and blocks, the rest fewer. In one of 16 the lanes of a
/// block are spread over two warps.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/core/random.hpp>
#include <quarry/simt/explore.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry {

struct script_bounds {
  std::uint32_t lanes = 8;       // that act, in the whole grid; at most
  std::uint32_t blocks = 2;      // at most
  std::uint32_t operations = 4;  // of a lane; at most
};

struct operation {
  bool frees = false;
  std::uint32_t block = 0;  // the malloc that made the block: its own number, or the one to free
  std::uint64_t size = 0;   // of a malloc
};

/// Which operations of a script are carried out; empty: all.
using keep_mask = std::vector<bool>;

class allocation_script {
 public:
  void generate(std::uint64_t seed, const script_bounds& bounds, std::uint64_t pool_bytes,
                const abilities& can);
  void keep(const keep_mask& mask) {
    keep_ = mask;
    if (!keep_.empty()) keep_.resize(size());
  }

  grid shape() const { return {blocks_, threads_, 1, 0}; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(operations_.size()); }
  const operation& at(std::uint32_t number) const { return operations_[number]; }
  bool kept(std::uint32_t number) const { return keep_.empty() || keep_[number]; }
  std::uint32_t kept_count() const {
    return keep_.empty() ? size()
                         : static_cast<std::uint32_t>(std::count(keep_.begin(), keep_.end(), true));
  }

  // The operations of a thread of the grid: [first, last).
  std::uint32_t first_of(std::uint64_t thread) const { return first_[thread]; }
  std::uint32_t last_of(std::uint64_t thread) const { return first_[thread + 1]; }
  std::uint32_t lane_of(std::uint32_t number) const {
    return static_cast<std::uint32_t>(std::upper_bound(first_.begin(), first_.end(), number) -
                                      first_.begin() - 1);
  }

  /// Allocators that overwrite: bytes to ask for beforehand.
  std::uint64_t warm_up() const { return warm_up_; }

  std::string to_text() const;

 private:
  using random = splitmix64;
  enum class mood : std::uint8_t { tiny, equal, skewed, large, mixed };

  void draw_shape(random& draw, const script_bounds& bounds);
  bool acts(std::uint32_t block, std::uint32_t thread) const;
  void draw_targets(random& draw);
  std::uint64_t draw_size(random& draw, mood kind) const;
  std::uint64_t draw_odd_size(random& draw, const abilities& can) const;

  std::vector<operation> operations_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> mallocs_;
  keep_mask keep_;
  std::uint32_t blocks_ = 1, threads_ = 1;
  std::uint32_t acting_ = 1, per_block_ = 1;
  bool two_warps_ = false;
  std::uint64_t pool_bytes_ = 0;
  std::uint64_t equal_size_ = 16;
  std::uint64_t warm_up_ = 0;
};

// ---- drawing -----------------------------------------------------------------------------------

inline void allocation_script::generate(std::uint64_t seed, const script_bounds& bounds,
                                        std::uint64_t pool_bytes, const abilities& can) {
  random draw(seed * 0x9e3779b97f4a7c15u + 0x7f4a7c15u);
  operations_.clear();
  first_.clear();
  mallocs_.clear();
  keep_.clear();
  pool_bytes_ = pool_bytes;
  warm_up_ = 0;
  draw_shape(draw, bounds);
  constexpr mood moods[] = {mood::tiny,   mood::tiny,  mood::equal, mood::equal,
                            mood::skewed, mood::large, mood::mixed, mood::mixed};
  const mood kind = moods[draw.below(8)];
  equal_size_ = draw.below(2) != 0 ? 16u << draw.below(4) : 1 + draw.below(128);
  for (std::uint32_t block = 0; block < blocks_; ++block) {
    for (std::uint32_t thread = 0; thread < threads_; ++thread) {
      first_.push_back(size());
      if (!acts(block, thread)) continue;
      const std::uint32_t count =
          draw.below(2) != 0 ? bounds.operations : 1 + draw.below(bounds.operations);
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t number = size();
        const bool frees = can.frees_one && draw.below(i == 0 ? 8 : 2) == 0;
        if (frees) {
          operations_.push_back({true, number, 0});
          continue;
        }
        const bool odd = draw.below(24) == 0;
        mallocs_.push_back(number);
        operations_.push_back(
            {false, number, odd ? draw_odd_size(draw, can) : draw_size(draw, kind)});
      }
    }
  }
  first_.push_back(size());
  draw_targets(draw);
  if (!can.overwrites) return;
  warm_up_ = 16 * draw.below(static_cast<std::uint32_t>(pool_bytes / 16));
  for (operation& op : operations_)
    if (op.size <= pool_bytes)
      op.size = std::min(op.size, std::max<std::uint64_t>(pool_bytes / 8, 16));
}

inline void allocation_script::draw_shape(random& draw, const script_bounds& bounds) {
  acting_ = draw.below(2) != 0 ? bounds.lanes : 1 + draw.below(bounds.lanes);
  blocks_ = draw.below(2) != 0 ? bounds.blocks : 1 + draw.below(bounds.blocks);
  blocks_ = std::clamp(blocks_, 1u, acting_);
  per_block_ = (acting_ + blocks_ - 1) / blocks_;
  two_warps_ = per_block_ > 1 && per_block_ <= 32 && draw.below(16) == 0;
  threads_ = two_warps_ ? 32 + per_block_ / 2 : per_block_;
}

inline bool allocation_script::acts(std::uint32_t block, std::uint32_t thread) const {
  std::uint32_t place = thread;  // among the lanes of this block that may act
  if (two_warps_) place = thread < 32 ? 2 * thread : 2 * (thread - 32) + 1;
  return place < per_block_ && place * blocks_ + block < acting_;
}

// Half of the frees are for a block of the same lane, if it asked for one before; the rest for any.
inline void allocation_script::draw_targets(random& draw) {
  if (mallocs_.empty()) return;
  std::uint32_t lane = 0;
  std::uint32_t own_begin = 0, own_end = 0;  // in mallocs_: what this lane asked for before
  for (std::uint32_t i = 0; i < size(); ++i) {
    for (; first_[lane + 1] <= i; ++lane) own_begin = own_end;
    if (!operations_[i].frees) {
      ++own_end;
      continue;
    }
    const bool own = own_end > own_begin && draw.below(2) == 0;
    const std::uint32_t choice = own ? own_begin + draw.below(own_end - own_begin)
                                     : draw.below(static_cast<std::uint32_t>(mallocs_.size()));
    operations_[i].block = mallocs_[choice];
  }
}

inline std::uint64_t allocation_script::draw_size(random& draw, mood kind) const {
  const auto pool = static_cast<std::uint32_t>(std::min<std::uint64_t>(pool_bytes_, 1u << 20));
  switch (kind) {
    case mood::tiny: return 1 + draw.below(64);
    case mood::equal: return equal_size_;
    case mood::skewed:
      return (std::uint64_t{1} << draw.below(log2_floor(pool) + 1)) + draw.below(4);
    case mood::large: return pool / 4 + draw.below(pool - pool / 4 + 1);
    default: return draw_size(draw, static_cast<mood>(draw.below(4)));
  }
}

inline std::uint64_t allocation_script::draw_odd_size(random& draw, const abilities& can) const {
  switch (draw.below(can.owns_pool ? 6 : 3)) {
    case 0:
    case 1: return 0;
    case 2: return ~std::uint64_t{0} - draw.below(128);
    case 3: return pool_bytes_ + 1 + draw.below(64);
    case 4: return (std::uint64_t{1} << 32) + 16 * draw.below(16);
    default: return (std::uint64_t{1} << 63) + draw.below(64);
  }
}

// ---- for people --------------------------------------------------------------------------------

inline std::string allocation_script::to_text() const {
  std::string text = std::to_string(blocks_) + (blocks_ == 1 ? " block of " : " blocks of ") +
                     std::to_string(threads_) + (threads_ == 1 ? " lane" : " lanes") +
                     ", pool of " + std::to_string(pool_bytes_) + " bytes";
  if (warm_up_ != 0) text += ", " + std::to_string(warm_up_) + " bytes taken before";
  text += '\n';
  for (std::uint32_t lane = 0; lane + 1 < first_.size(); ++lane) {
    std::string line;
    for (std::uint32_t i = first_[lane]; i < first_[lane + 1]; ++i) {
      if (!kept(i)) continue;
      const operation& op = operations_[i];
      std::string name = "#";  // g++ 12 at -O3 sees a ghost in "#" + …
      name += std::to_string(op.block);
      line += op.frees ? "  free(" + name + ")"
                       : "  " + name + " = malloc(" + std::to_string(op.size) + ")";
    }
    if (!line.empty())
      text += "lane " + std::to_string(lane) + (lane < 10 ? " " : "") + line + '\n';
  }
  return text;
}

}  // namespace quarry
