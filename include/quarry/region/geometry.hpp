// SPDX-License-Identifier: Apache-2.0
#pragma once
/// slab_geometry: sizes of page, slab and slot (Lyberis et al. 2012), and how slots tile slabs.
///
///   page   what a pool receives while memory is plentiful            1 MiB
///   slab   what a pool assigns to one object size                    4 KiB
///   slot   object sizes are rounded up to multiples of this size     64 B, called a unit
///
/// Objects of up to 8 slabs lie in a group: consecutive slabs, tiled with slots from the first byte
/// on. A slot may cross the border between slabs of a group, but not the end of the group:
///
///   192 B    |0    |1    |2    | ...  64 slots in 3 slabs, nothing wasted
///            |   slab 0   |   slab 1   |   slab 2   |
///
/// group_of(units) is the smallest number of slabs, at most 16, that wastes at most 1/256 of the
/// group; if there is none, the number that wastes least. Larger objects have slabs of their own.

#include <cstddef>
#include <cstdint>

namespace quarry {

struct slab_geometry {
  std::size_t slab = 4096;
  std::size_t page = std::size_t{1} << 20;
  std::size_t slot = 64;

  static constexpr unsigned most_slabs_in_group = 16;

  constexpr unsigned units_in_slab() const { return static_cast<unsigned>(slab / slot); }
  constexpr unsigned slabs_in_page() const { return static_cast<unsigned>(page / slab); }
  /// A chunk has one owner: it is the smallest unit that a pool receives.
  // NOLINTNEXTLINE(readability-convert-member-functions-to-static): called as the other properties
  constexpr unsigned slabs_in_chunk() const { return most_slabs_in_group; }
  /// The size of the largest object, in units, that shares its slabs with other objects.
  constexpr unsigned most_units() const { return 8 * units_in_slab(); }
  constexpr bool is_sound() const {
    const auto power = [](std::size_t n) { return n != 0 && (n & (n - 1)) == 0; };
    return power(slab) && power(page) && power(slot) && slot >= 16 && slab / slot >= 1 &&
           slab / slot <= 64 && page / slab >= most_slabs_in_group && slab >= 1024;
  }

  /// Returns the slabs in a group of objects of `units` units. Requires 1 <= units <= most_units().
  constexpr unsigned group_of(unsigned units) const {
    unsigned best = 0;
    for (unsigned slabs = 1; slabs <= most_slabs_in_group; ++slabs) {
      const unsigned room = slabs * units_in_slab();
      if (room < units) continue;
      const unsigned waste = room % units;
      if (waste * 256 <= room) return slabs;
      if (best == 0 || waste * best < best * units_in_slab() % units * slabs) best = slabs;
    }
    return best;
  }

  /// Returns a mask: bit u is set if a slot starts at unit u of slab `place` of the group.
  constexpr std::uint64_t starts(unsigned units, unsigned group, unsigned place) const {
    const unsigned first = place * units_in_slab();
    const unsigned end = group * units_in_slab();
    std::uint64_t mask = 0;
    for (unsigned at = (first + units - 1) / units * units;
         at < first + units_in_slab() && at + units <= end; at += units)
      mask |= std::uint64_t{1} << (at - first);
    return mask;
  }
};

/// A table of starts() for slots of up to a slab. At most one larger slot starts in a slab.
template <slab_geometry Geometry>
struct start_masks {
  std::uint64_t of[Geometry.units_in_slab()][slab_geometry::most_slabs_in_group] = {};
  constexpr start_masks() {
    for (unsigned units = 1; units <= Geometry.units_in_slab(); ++units) {
      const unsigned group = Geometry.group_of(units);
      for (unsigned place = 0; place < group; ++place)
        of[units - 1][place] = Geometry.starts(units, group, place);
    }
  }
};
template <slab_geometry Geometry>
inline constexpr start_masks<Geometry> all_start_masks{};

/// The sizes of Lyberis et al. (2012).
inline constexpr slab_geometry default_geometry{};

static_assert(default_geometry.is_sound());
static_assert(default_geometry.group_of(1) == 1 && default_geometry.group_of(64) == 1);
static_assert(default_geometry.group_of(3) == 3 && default_geometry.group_of(17) == 4);
static_assert(default_geometry.starts(3, 3, 0) == 0x9249'2492'4924'9249u);
static_assert(default_geometry.starts(3, 3, 1) == 0x4924'9249'2492'4924u);

}  // namespace quarry
