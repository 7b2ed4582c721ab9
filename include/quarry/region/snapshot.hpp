// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Snapshots: a region and its descendants, written to a file and read back at the same addresses by
/// a later run of the program, so that pointers inside stay good.
///
///   save_snapshot(tree, id, "document.snap", first_node);
///   ...another run...
///   region_tree tree(snapshot_options("document.snap"));      // the same addresses again
///   auto [id, root] = load_snapshot(tree, "document.snap");   // root is first_node
///
/// A file is checked as a whole (length, sums, whether every slab makes sense) before the tree is
/// touched; then the addresses are claimed. If one is taken, what was claimed is given back. Regions
/// get new ids. Finalizers are not saved: functions may lie elsewhere in the next run; pointers out
/// of the regions, vtables included, are the user's affair.
/// A file is written under another name first: an interrupted save leaves the old one alone.

#include <quarry/core/config.hpp>
#include <quarry/region/region_tree.hpp>
#include <quarry/region/snapshot_file.hpp>

#include <unordered_map>

namespace quarry {

/// Where trees that want snapshots can usually lie, in every run. ThreadSanitizer's shadow fills the
/// middle of the address space and leaves 340 GiB below the program.
#if QUARRY_TSAN
inline void* const snapshot_address = reinterpret_cast<void*>(0x5500'0000'0000);  // NOLINT
#else
inline void* const snapshot_address = reinterpret_cast<void*>(0x2000'0000'0000);  // NOLINT
#endif

struct loaded_snapshot {
  region_id id;
  void* root = nullptr;
};

/// Checks the header only.
inline snapshot_header snapshot_info(const std::string& path) {
  snapshot_stream in(path, "rb");
  const auto header = in.read<snapshot_header>();
  if (header.magic != snapshot_header::magic_number)
    throw snapshot_error(path + ": is no snapshot of regions");
  if (header.version != snapshot_header::this_version)
    throw snapshot_error(path + ": has version " + std::to_string(header.version) + ", not " +
                         std::to_string(snapshot_header::this_version));
  if (header.header_sum != snapshot_sum::of(header))
    throw snapshot_error(path + ": is damaged (header)");
  return header;
}

/// For a tree that can hold the snapshot: the range it was saved from.
inline tree_options snapshot_options(const std::string& path) {
  const snapshot_header header = snapshot_info(path);
  tree_options options;
  options.where = reinterpret_cast<void*>(header.base);  // NOLINT
  options.range = header.range;
  return options;
}

namespace detail {

template <slab_geometry Geometry>
snapshot_slab saved_slab(const slab_map<Geometry>& table, slab_number n) {
  const unsigned units = table.units(n);
  const slab_links& l = table.links(n);
  const bool grouped = units != 0 && units <= Geometry.most_units();
  return {table.live(n), units == 0 ? 0 : l.free, units, grouped ? l.place : 0u};
}

/// Whether the slabs of a range are what a pool could have written; which of them are used is added.
template <slab_geometry Geometry>
bool is_sound(std::span<const snapshot_slab> slabs, std::vector<bool>& used) {
  for (std::size_t at = 0; at < slabs.size();) {
    const snapshot_slab& s = slabs[at];
    std::size_t length = s.free;
    if (s.units == slab_units::run || s.units == slab_units::large) {
      const bool live = s.units == slab_units::large;
      if (s.live != (live ? 1u : 0u) || length == 0 || length > slabs.size() - at) return false;
      for (std::size_t i = 1; i < length; ++i) {
        const bool ends = s.units == slab_units::run && i + 1 == length;
        const snapshot_slab& t = slabs[at + i];
        if (t.live != 0 || t.place != 0 || t.units != (ends ? slab_units::run_end : 0) ||
            t.free != (ends ? length : 0))
          return false;
      }
      used.insert(used.end(), length, live);
    } else {
      if (s.units == 0 || s.units > Geometry.most_units()) return false;
      length = Geometry.group_of(s.units);
      if (length > slabs.size() - at) return false;
      for (unsigned i = 0; i < length; ++i) {
        const snapshot_slab& t = slabs[at + i];
        if (t.units != s.units || t.place != i || (t.free & t.live) != 0 ||
            (t.free | t.live) != Geometry.starts(s.units, static_cast<unsigned>(length), i))
          return false;
      }
      std::uint32_t mask = 0;
      for (unsigned i = 0; i < length; ++i)
        if (slabs[at + i].live != 0) {
          const unsigned last = i * Geometry.units_in_slab() + log2_floor(slabs[at + i].live);
          for (unsigned j = i; j <= (last + s.units - 1) / Geometry.units_in_slab(); ++j)
            mask |= 1u << j;
        }
      for (unsigned i = 0; i < length; ++i) used.push_back((mask >> i & 1) != 0);
    }
    at += length;
  }
  return true;
}

}  // namespace detail

/// Requires: no thread changes the regions meanwhile. `root` comes back with load_snapshot.
template <slab_geometry Geometry>
void save_snapshot(basic_region_tree<Geometry>& tree, region_id id, const std::string& path,
                   const void* root = nullptr) {
  auto* top = tree.find(id);
  if (top == nullptr) throw snapshot_error(path + ": the region to save was freed, or never was");
  const slab_map<Geometry>& table = tree.table();
  snapshot_header header;
  header.slab = Geometry.slab, header.page = Geometry.page, header.slot = Geometry.slot;
  header.base = reinterpret_cast<std::uint64_t>(table.base());
  header.range = table.size();
  header.root = reinterpret_cast<std::uint64_t>(root);

  std::vector<snapshot_region> regions;
  std::vector<snapshot_range> ranges;
  std::vector<slab_run> runs, used;
  std::unordered_map<const void*, std::uint32_t> places;
  tree.for_each_below(*top, [&](region_node<Geometry>& node) {
    node.it->pool.reclaim();  // so that every slot is free or live
    const auto place = static_cast<std::uint32_t>(regions.size());
    places[&node] = place;
    regions.push_back(
        {place == 0 ? 0 : places[node.parent], node.is_shared() ? 1u : 0u, node.it->held.size()});
    for (const auto [first, count] : node.it->held) {
      const slab_run run{static_cast<slab_number>(first), static_cast<slab_number>(count)};
      runs.push_back(run);
      ranges.push_back({reinterpret_cast<std::uint64_t>(table.address(run.first)), count});
      node.it->pool.for_each_used(run, [&](slab_run u) { used.push_back(u); });
    }
  });
  header.regions = static_cast<std::uint32_t>(regions.size());
  header.ranges = ranges.size();
  for (const slab_run run : runs) header.slabs += run.count;
  for (const slab_run run : used) header.used_slabs += run.count;

  const std::string unfinished = path + ".unfinished";
  try {
    snapshot_stream out(unfinished, "wb");
    out.write(&header, sizeof(header));
    out.seek(sizeof(header));
    out.write(regions.data(), regions.size() * sizeof(snapshot_region));
    out.write(ranges.data(), ranges.size() * sizeof(snapshot_range));
    for (const slab_run run : runs)
      for (slab_number n = run.first; n < run.end(); ++n) {
        const snapshot_slab saved = detail::saved_slab(table, n);
        out.write(&saved, sizeof(saved));
      }
    for (const slab_run run : used)
      out.write(table.address(run.first), std::size_t{run.count} * Geometry.slab);
    header.body_bytes = out.bytes();
    header.body_sum = out.sum();
    header.header_sum = snapshot_sum::of(header);
    out.seek(0);
    out.write(&header, sizeof(header));
    out.close();
    if (std::rename(unfinished.c_str(), path.c_str()) != 0)
      throw snapshot_error(path + ": can not be written: " + std::strerror(errno));
  } catch (...) {
    std::remove(unfinished.c_str());
    throw;
  }
}

}  // namespace quarry

#include <quarry/region/snapshot_load.hpp>
