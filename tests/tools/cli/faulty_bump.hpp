// SPDX-License-Identifier: Apache-2.0
#pragma once
/// faulty_bump: a bump allocator with a defect. The checks of the commands must detect each defect.
///
/// The defect is a variable of the program, so that the kernels of a test are compiled once. A test
/// sets it with a `with_defect` before it makes a heap.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>
#include <string>

namespace quarry::tool {

enum class defect : std::uint8_t {
  none,
  overlaps,     // a block begins 16 bytes before the end of the previous block
  misaligns,    // blocks at odd multiples of 8
  strays,       // blocks outside the pool
  spoils,       // malloc writes into the previous block
  fails,        // every seventh request returns nullptr
  forgets,      // provides less memory after a reset
  breaks,       // check_invariants() reports an error
  counts_wrong  // reports live blocks after all blocks were freed
};

/// The defect of every faulty_bump.
inline defect present_defect = defect::none;

/// Sets the defect for the lifetime of this object.
struct with_defect {
  explicit with_defect(defect d) { present_defect = d; }
  ~with_defect() { present_defect = defect::none; }
  with_defect(const with_defect&) = delete;
  with_defect& operator=(const with_defect&) = delete;
};

/// `Frees`: whether the allocator supports free, which has no effect.
template <bool Frees = false>
class faulty_bump {
 public:
  static constexpr abilities can = {.frees_one = Frees};

  faulty_bump() = default;
  faulty_bump(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        size_(pool.size),
        next_(metadata.take<std::uint64_t>("next", 1)),
        calls_(metadata.take<std::uint64_t>("calls", 1)),
        elsewhere_(metadata.take<std::byte>("elsewhere", has(defect::strays) ? pool.size : 1)) {}

  void initialise(std::uint64_t lane, std::uint64_t) const {
    if (!has(defect::forgets) || lane != 0) return;
    auto* mark = reinterpret_cast<std::uint64_t*>(pool_ + align_down(size_, 8) - 8);
    if (*mark == used) *next_ = align_down(size_, 16) - 64;
    *mark = used;
  }

  void* malloc(std::size_t n) const {
    if (n == 0 || n > size_) return nullptr;
    const std::uint64_t call = simt::atomic_ref<std::uint64_t>(*calls_).fetch_add(1, simt::relaxed);
    if (has(defect::fails) && call % 7 == 6) return nullptr;
    std::uint64_t taken = align_up(std::uint64_t{n}, 16);
    if (has(defect::overlaps) && taken > 16) taken -= 16;
    const std::uint64_t first =
        simt::atomic_ref<std::uint64_t>(*next_).fetch_add(taken, simt::relaxed);
    if (first + align_up(std::uint64_t{n}, 16) + 16 > size_) return nullptr;
    if (has(defect::misaligns)) return pool_ + first + 8;
    if (has(defect::strays)) return elsewhere_ + first;
    if (has(defect::spoils) && first != 0) pool_[first - 1] ^= std::byte{0xff};
    return pool_ + first;
  }
  void free(void*) const requires(Frees) {}

  std::string check_invariants() const { return has(defect::breaks) ? "two and two are five" : ""; }
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = size_;
    if (has(defect::counts_wrong)) s.live_blocks = *calls_;
    return s;
  }

 private:
  static bool has(defect d) { return present_defect == d; }

  static constexpr std::uint64_t used = 0x7155'ed00'7155'ed00u;

  std::byte* pool_;
  std::uint64_t size_;
  std::uint64_t* next_;
  std::uint64_t* calls_;
  std::byte* elsewhere_;
};

static_assert(allocator<faulty_bump<>>);

}  // namespace quarry::tool
