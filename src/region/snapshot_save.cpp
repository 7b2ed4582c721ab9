// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/snapshot.hpp>

#include <unordered_map>
#include <vector>

namespace quarry {
namespace {

using table_view = slab_table_view<default_geometry>;

snapshot_slab saved_slab(const table_view& table, slab_number n) {
  const unsigned units = table.units(n);
  const slab_links& l = table.links(n);
  const bool grouped = units != 0 && units <= default_geometry.most_units();
  return {table.live(n), units == 0 ? 0 : l.free, units, grouped ? l.place : 0u};
}

}  // namespace

void save_snapshot(region_tree& tree, region_id id, const std::string& path, const void* root) {
  auto* top = tree.find(id);
  if (top == nullptr)
    throw snapshot_error(path + ": the region to save was destroyed, or never existed");
  const table_view& table = tree.table();
  snapshot_header header;
  header.slab = default_geometry.slab, header.page = default_geometry.page,
  header.slot = default_geometry.slot;
  header.base = reinterpret_cast<std::uint64_t>(table.base());
  header.range = table.size();
  header.root = reinterpret_cast<std::uint64_t>(root);

  std::vector<snapshot_region> regions;
  std::vector<snapshot_range> ranges;
  std::vector<slab_run> runs, used;
  std::unordered_map<const void*, std::uint32_t> places;
  tree.for_each_below(*top, [&](region_tree::node_type& node) {
    node.it->pool.reclaim();  // empties the magazines: every slot is free or live
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

  snapshot_replacement file(path);
  snapshot_stream& out = file.stream();
  out.write(&header, sizeof(header));
  out.seek(sizeof(header));
  out.write(regions.data(), regions.size() * sizeof(snapshot_region));
  out.write(ranges.data(), ranges.size() * sizeof(snapshot_range));
  for (const slab_run run : runs)
    for (slab_number n = run.first; n < run.end(); ++n) {
      const snapshot_slab saved = saved_slab(table, n);
      out.write(&saved, sizeof(saved));
    }
  for (const slab_run run : used)
    out.write(table.address(run.first), std::size_t{run.count} * default_geometry.slab);
  header.body_bytes = out.bytes();
  header.body_sum = out.sum();
  header.header_sum = snapshot_sum::of(header);
  out.seek(0);
  out.write(&header, sizeof(header));
  file.commit();
}

}  // namespace quarry
