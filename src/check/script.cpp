// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/script.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/core/random.hpp>

#include <utility>

namespace quarry {

// ---- drawing -----------------------------------------------------------------------------------

void allocation_script::generate(std::uint64_t seed, const script_bounds& bounds,
                                 std::uint64_t pool_bytes, const abilities& can) {
  random draw(seed * 0x9e3779b97f4a7c15u + 0x7f4a7c15u);
  operations_.clear();
  first_.clear();
  mallocs_.clear();
  keep_.clear();
  pool_bytes_ = pool_bytes;
  warm_up_ = 0;
  draw_shape(draw, bounds);
  constexpr distribution distributions[] = {
      distribution::small,  distribution::small, distribution::equal, distribution::equal,
      distribution::skewed, distribution::large, distribution::mixed, distribution::mixed};
  const distribution kind = distributions[draw.below(8)];
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
        const bool extreme = draw.below(24) == 0;
        mallocs_.push_back(number);
        operations_.push_back(
            {false, number, extreme ? draw_extreme_size(draw, can) : draw_size(draw, kind)});
      }
    }
  }
  first_.push_back(size());
  draw_targets(draw);
  if (!can.overwrites) return;
  warm_up_ = std::uint64_t{16} * draw.below(static_cast<std::uint32_t>(pool_bytes / 16));
  for (operation& op : operations_)
    if (op.size <= pool_bytes)
      op.size = std::min(op.size, std::max<std::uint64_t>(pool_bytes / 8, 16));
}

void allocation_script::draw_shape(random& draw, const script_bounds& bounds) {
  acting_ = draw.below(2) != 0 ? bounds.lanes : 1 + draw.below(bounds.lanes);
  blocks_ = draw.below(2) != 0 ? bounds.blocks : 1 + draw.below(bounds.blocks);
  blocks_ = std::clamp(blocks_, 1u, acting_);
  per_block_ = (acting_ + blocks_ - 1) / blocks_;
  two_warps_ = per_block_ > 1 && per_block_ <= 32 && draw.below(16) == 0;
  threads_ = two_warps_ ? 32 + per_block_ / 2 : per_block_;
}

bool allocation_script::acts(std::uint32_t block, std::uint32_t thread) const {
  std::uint32_t rank = thread;  // among the lanes of this block that may have operations
  if (two_warps_) rank = thread < 32 ? 2 * thread : 2 * (thread - 32) + 1;
  return rank < per_block_ && rank * blocks_ + block < acting_;
}

// Half of the frees name an earlier malloc of the same lane, if there is one; the others name any.
void allocation_script::draw_targets(random& draw) {
  if (mallocs_.empty()) return;
  std::uint32_t lane = 0;
  std::uint32_t own_begin = 0, own_end = 0;  // the earlier mallocs of this lane, in mallocs_
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

std::uint64_t allocation_script::draw_size(random& draw, distribution kind) const {
  const auto pool = static_cast<std::uint32_t>(std::min<std::uint64_t>(pool_bytes_, 1u << 20));
  switch (kind) {
    case distribution::small: return 1 + draw.below(64);
    case distribution::equal: return equal_size_;
    case distribution::skewed:
      return (std::uint64_t{1} << draw.below(log2_floor(pool) + 1)) + draw.below(4);
    case distribution::large: return pool / 4 + draw.below(pool - pool / 4 + 1);
    default: return draw_size(draw, static_cast<distribution>(draw.below(4)));
  }
}

std::uint64_t allocation_script::draw_extreme_size(random& draw, const abilities& can) const {
  switch (draw.below(can.owns_pool ? 6 : 3)) {
    case 0:
    case 1: return 0;
    case 2: return ~std::uint64_t{0} - draw.below(128);
    case 3: return pool_bytes_ + 1 + draw.below(64);
    case 4: return (std::uint64_t{1} << 32) + std::uint64_t{16} * draw.below(16);
    default: return (std::uint64_t{1} << 63) + draw.below(64);
  }
}

// ---- text -------------------------------------------------------------------------------------

std::string allocation_script::to_text() const {
  std::string text = std::to_string(blocks_) + (blocks_ == 1 ? " block of " : " blocks of ") +
                     std::to_string(threads_) + (threads_ == 1 ? " lane" : " lanes") +
                     ", pool of " + std::to_string(pool_bytes_) + " bytes";
  if (warm_up_ != 0) text += ", " + std::to_string(warm_up_) + " bytes allocated before";
  text += '\n';
  for (std::uint32_t lane = 0; lane + 1 < first_.size(); ++lane) {
    std::string line;
    for (std::uint32_t i = first_[lane]; i < first_[lane + 1]; ++i) {
      if (!kept(i)) continue;
      const operation& op = operations_[i];
      std::string name = "#";  // g++ 12 at -O3 gives a false warning for "#" + ...
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
