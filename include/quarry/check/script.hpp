// SPDX-License-Identifier: Apache-2.0
#pragma once
/// allocation_script: the calls of each lane of a small grid, as a function of a seed.
///
///   lane 0   #0 = malloc(96)   free(#3)
///   lane 1   #2 = malloc(16)   #3 = malloc(500)
///
/// A malloc is identified by its number in the script. A free names a malloc of any lane. The lane
/// skips the free if that block is not live. Any subset of a script is therefore a valid script,
/// and a failing script can be minimised.
///
/// Sizes: each script draws a distribution: small (1 to 64), equal, skewed (each power of two is
/// equally likely), large (at least a quarter of the pool), or mixed. One request in 24 is for 0
/// bytes, for more than the pool, or close to the largest integer. Allocators that overwrite
/// receive requests of at most an eighth of the pool, and start at a random offset in it.
///
/// Grid: half of the scripts use the maximum number of lanes and blocks, the others fewer. In one
/// of 16 scripts the lanes of a block are in two warps.

#include <quarry/core/allocator.hpp>
#include <quarry/core/random.hpp>
#include <quarry/simt/explore.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry {

/// Upper bounds of the size of a script.
struct script_bounds {
  std::uint32_t lanes = 8;       // lanes of the grid with operations
  std::uint32_t blocks = 2;      // blocks of the grid
  std::uint32_t operations = 4;  // per lane
};

struct operation {
  bool frees = false;
  std::uint32_t block = 0;  // the number of the malloc; for a free, the malloc of the block
  std::uint64_t size = 0;   // of a malloc
};

/// The operations of a script that are executed; empty: all.
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

  /// Allocators that overwrite: the number of bytes to allocate before the script.
  std::uint64_t warm_up() const { return warm_up_; }

  std::string to_text() const;

 private:
  using random = splitmix64;
  enum class distribution : std::uint8_t { small, equal, skewed, large, mixed };

  void draw_shape(random& draw, const script_bounds& bounds);
  bool acts(std::uint32_t block, std::uint32_t thread) const;
  void draw_targets(random& draw);
  std::uint64_t draw_size(random& draw, distribution kind) const;
  std::uint64_t draw_extreme_size(random& draw, const abilities& can) const;

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

}  // namespace quarry
