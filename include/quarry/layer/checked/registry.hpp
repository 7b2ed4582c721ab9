// SPDX-License-Identifier: Apache-2.0
#pragma once
/// block_registry: which blocks there are, beside the pool: a hash table of addresses.
///
///   keys    | address, state | - | address, state | …     an address is a multiple of 16: the state fits in
///   sizes   | as asked for   | - | …                      the same place of three arrays
///   lanes   | who asked; later who freed | …
///
///   nothing → busy → live → leaving → waiting → gone → busy …     a slot never becomes empty again
///
/// A block lies in one of the `reach` slots from where its address hashes to, the first that was empty
/// or gone. So a search ends at an empty slot, or after `reach`. An address that is searched for is only
/// compared, never followed: it may be anything.
/// What is gone stays to be recognised (as freed) until its slot is taken for another block.
///
/// Full: `reach` slots side by side are all in use. Filled until the first refusal, with random addresses
/// or blocks side by side, tables of 2^10 … 2^22 slots had 0.74 … 0.89 of their slots in use. Then
/// insert says no, and the caller decides.
///
/// Invariant: at most one slot of an address is live. live → leaving is a compare-exchange: of two lanes
/// that free a block, one has it.
/// Ordering: size and lane are set before live is published (release); claim acquires; gone is published
/// after they were read (release), and taking the slot acquires.
/// Bound: reach slots for each call, each tried once.

#include <quarry/core/bits.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

class block_registry {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t reach = 256;
  static constexpr std::uint32_t smallest = 256;  // slots

  enum state : std::uint64_t { nothing, busy, live, leaving, waiting, gone };

  struct entry {
    std::byte* block;
    state now;
    std::uint64_t size;
    std::uint64_t lane;
  };

  block_registry() = default;
  block_registry(carve& metadata, std::uint64_t wanted)
      : mask_(slots_for(wanted) - 1),
        keys_(metadata.take<std::uint64_t>("blocks", slots())),
        sizes_(metadata.take<std::uint64_t>("sizes", slots())),
        lanes_(metadata.take<std::uint64_t>("lanes", slots())) {}

  QUARRY_DEVICE std::uint32_t slots() const { return mask_ + 1; }

  /// Notes a live block. none: no slot.
  QUARRY_DEVICE std::uint32_t insert(std::byte* block, std::uint64_t size,
                                     std::uint64_t lane) const {
    const auto address = reinterpret_cast<std::uint64_t>(block);
    for (std::uint32_t i = 0; i < reach; ++i) {
      const std::uint32_t slot = (home(address) + i) & mask_;
      std::uint64_t seen = key(slot).load(simt::relaxed);
      if (state_of(seen) != nothing && state_of(seen) != gone) continue;
      if (!key(slot).compare_exchange(seen, address | busy, simt::acquire)) continue;
      word(sizes_[slot]).store(size, simt::relaxed);
      word(lanes_[slot]).store(lane, simt::relaxed);
      key(slot).store(address | live, simt::release);
      return slot;
    }
    return none;
  }

  struct claimed {
    std::uint32_t slot;    // the block was live, and is the caller's now
    std::uint32_t former;  // it was not, but somebody has freed it before
  };
  /// For whoever frees.
  QUARRY_DEVICE claimed claim(std::uint64_t address) const {
    claimed result{none, none};
    find(address, [&](std::uint32_t slot, std::uint64_t seen) {
      if (state_of(seen) == live &&
          key(slot).compare_exchange(seen, address | leaving, simt::acq_rel)) {
        result.slot = slot;
        return true;
      }
      result.former = slot;
      return false;
    });
    return result;
  }
  // The owner of a claimed slot:
  /// The block waits; `lane` has freed it.
  QUARRY_DEVICE void retire(std::uint32_t slot, std::uint64_t lane) const {
    word(lanes_[slot]).store(lane, simt::relaxed);
    key(slot).store(address_of(key(slot).load(simt::relaxed)) | waiting, simt::release);
  }
  /// The block is no longer ours to know.
  QUARRY_DEVICE void forget(std::uint32_t slot) const {
    key(slot).store(address_of(key(slot).load(simt::relaxed)) | gone, simt::release);
  }

  QUARRY_DEVICE entry at(std::uint32_t slot) const {
    const std::uint64_t seen = key(slot).load(simt::acquire);
    return {reinterpret_cast<std::byte*>(address_of(seen)), state_of(seen),
            word(sizes_[slot]).load(simt::relaxed), word(lanes_[slot]).load(simt::relaxed)};
  }

  /// The live or waiting block that this address lies in. Looks for starts up to 1 KiB before; then,
  /// if `everywhere`, at all slots.
  QUARRY_DEVICE std::uint32_t around(std::uint64_t address, bool everywhere) const {
    const std::uint64_t start = align_down(address, std::uint64_t{16});
    for (std::uint64_t back = 0; back <= 1024 && back < start; back += 16) {
      std::uint32_t found = none;
      find(start - back, [&](std::uint32_t slot, std::uint64_t) {
        if (covers(slot, address)) found = slot;
        return found != none;
      });
      if (found != none) return found;
    }
    for (std::uint32_t slot = 0; everywhere && slot <= mask_; ++slot)
      if (covers(slot, address)) return slot;
    return none;
  }

  /// Between kernels. Empty: every slot is where it should be.
  std::string check_invariants() const {
    for (std::uint32_t slot = 0; slot <= mask_; ++slot) {
      const state now = state_of(keys_[slot]);
      if (now == nothing) continue;
      const std::string where = "the registry's slot " + std::to_string(slot);
      if (now == busy || now == leaving || now > gone) return where + " was left halfway";
      const std::uint32_t first = home(address_of(keys_[slot]));
      if (((slot - first) & mask_) >= reach) return where + " is too far from home";
      for (std::uint32_t i = first; i != slot; i = (i + 1) & mask_)
        if (keys_[i] == 0)
          return where + " can not be found: slot " + std::to_string(i) + " is empty";
    }
    return {};
  }

 private:
  static std::uint32_t slots_for(std::uint64_t wanted) {
    if (wanted <= smallest) return smallest;
    return std::uint32_t{1} << (wanted >= 1u << 30 ? 30 : log2_ceil(wanted));
  }
  QUARRY_DEVICE static state state_of(std::uint64_t key) { return static_cast<state>(key & 15); }
  QUARRY_DEVICE static std::uint64_t address_of(std::uint64_t key) {
    return key & ~std::uint64_t{15};
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> key(std::uint32_t slot) const {
    return word(keys_[slot]);
  }
  QUARRY_DEVICE std::uint32_t home(std::uint64_t address) const {
    std::uint64_t mixed = (address >> 4) * 0x9e37'79b9'7f4a'7c15u;
    mixed = (mixed ^ mixed >> 32) * 0xd6e8'feb8'6659'fd93u;
    return static_cast<std::uint32_t>(mixed >> 32) & mask_;
  }

  /// visit(slot, key) for every slot with this address, until one says true.
  template <class Visit>
  QUARRY_DEVICE void find(std::uint64_t address, Visit visit) const {
    if (address % 16 != 0) return;
    for (std::uint32_t i = 0; i < reach; ++i) {
      const std::uint32_t slot = (home(address) + i) & mask_;
      const std::uint64_t seen = key(slot).load(simt::acquire);
      if (seen == 0) return;
      if (address_of(seen) == address && visit(slot, seen)) return;
    }
  }
  QUARRY_DEVICE bool covers(std::uint32_t slot, std::uint64_t address) const {
    const entry e = at(slot);
    const auto first = reinterpret_cast<std::uint64_t>(e.block);
    return (e.now == live || e.now == waiting) && address >= first && address - first < e.size;
  }

  std::uint32_t mask_;
  std::uint64_t* keys_;
  std::uint64_t* sizes_;
  std::uint64_t* lanes_;
};

}  // namespace quarry
