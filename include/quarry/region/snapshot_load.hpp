// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reading a snapshot back. Part of snapshot.hpp.

#include <quarry/region/snapshot.hpp>

namespace quarry {

namespace detail {

/// Everything but the contents, checked.
struct snapshot_body {
  std::vector<snapshot_region> regions;
  std::vector<snapshot_range> ranges;
  std::vector<snapshot_slab> slabs;
  std::vector<bool> used;  // of each slab
};

/// The whole file passes by once, before anything is believed.
inline void check_sum(snapshot_stream& in, const snapshot_header& header) {
  in.seek(sizeof(header));
  std::vector<char> buffer(1 << 20);
  for (std::uint64_t left = header.body_bytes; left > 0;) {
    const std::uint64_t part = std::min<std::uint64_t>(left, buffer.size());
    in.read(buffer.data(), part);
    left -= part;
  }
  if (!in.at_end()) throw snapshot_error(in.path() + ": is longer than it says");
  if (in.sum() != header.body_sum) throw snapshot_error(in.path() + ": is damaged (contents)");
}

template <class T>
std::vector<T> read_all(snapshot_stream& in, std::uint64_t count) {
  std::vector<T> all(count);
  in.read(all.data(), count * sizeof(T));
  return all;
}

template <slab_geometry Geometry>
snapshot_body read_body(snapshot_stream& in, const snapshot_header& header) {
  const auto wrong = [&] { return snapshot_error(in.path() + ": makes no sense"); };
  const std::uint64_t most = header.body_bytes;
  if (header.regions == 0 || header.ranges > most || header.slabs > most ||
      header.used_slabs > most ||
      header.regions * sizeof(snapshot_region) + header.ranges * sizeof(snapshot_range) +
              header.slabs * sizeof(snapshot_slab) + header.used_slabs * Geometry.slab !=
          most)
    throw wrong();
  in.seek(sizeof(header));
  snapshot_body body;
  body.regions = read_all<snapshot_region>(in, header.regions);
  body.ranges = read_all<snapshot_range>(in, header.ranges);
  body.slabs = read_all<snapshot_slab>(in, header.slabs);
  std::uint64_t ranges = 0, slabs = 0;
  for (std::size_t i = 0; i < body.regions.size(); ++i) {
    if (i > 0 && body.regions[i].parent >= i) throw wrong();
    ranges += body.regions[i].ranges;
  }
  if (ranges != header.ranges) throw wrong();
  for (const snapshot_range& range : body.ranges) {
    if (range.slabs > header.slabs - slabs ||
        !is_sound<Geometry>(std::span(body.slabs).subspan(slabs, range.slabs), body.used))
      throw wrong();
    slabs += range.slabs;
  }
  const auto used =
      static_cast<std::uint64_t>(std::count(body.used.begin(), body.used.end(), true));
  if (slabs != header.slabs || used != header.used_slabs) throw wrong();
  return body;
}

/// Slabs as they were; the contents of the used ones follow in the file.
template <slab_geometry Geometry>
void restore(snapshot_stream& in, const slab_map<Geometry>& table, slab_run run,
             const snapshot_body& body, std::size_t at) {
  for (slab_number i = 0; i < run.count; ++i) {
    const snapshot_slab& slab = body.slabs[at + i];
    table.units(run.first + i) = static_cast<std::uint16_t>(slab.units);
    table.live(run.first + i) = slab.live;
    slab_links& l = table.links(run.first + i);
    l.free = slab.free;
    l.place = static_cast<std::uint8_t>(slab.place);
    l.busy = 0;
    if (body.used[at + i]) in.read(table.address(run.first + i), Geometry.slab);
  }
}

}  // namespace detail

/// Under `parent`. Throws snapshot_error: the file is no good, or its addresses are not free here;
/// the tree is then as it was.
template <slab_geometry Geometry>
loaded_snapshot load_snapshot(basic_region_tree<Geometry>& tree, const std::string& path,
                              region_id parent = root_region) {
  const snapshot_header header = snapshot_info(path);
  if (header.slab != Geometry.slab || header.page != Geometry.page || header.slot != Geometry.slot)
    throw snapshot_error(path + ": was saved with slabs of another size");
  snapshot_stream in(path, "rb");
  detail::check_sum(in, header);
  const detail::snapshot_body body = detail::read_body<Geometry>(in, header);

  const slab_map<Geometry>& table = tree.table();
  std::vector<region_id> ids;
  try {
    std::size_t next_range = 0, next_slab = 0;
    for (std::size_t i = 0; i < body.regions.size(); ++i) {
      const snapshot_region& saved = body.regions[i];
      const auto made =
          tree.create_region(i == 0 ? parent : ids[saved.parent],
                             saved.shared != 0 ? sharing::many_threads : sharing::one_thread);
      if (!made) throw snapshot_error(path + ": " + to_text(made.status));
      ids.push_back(*made);
      auto& node = *tree.find(*made);
      for (std::uint64_t r = 0; r < saved.ranges; ++r, ++next_range) {
        const snapshot_range& range = body.ranges[next_range];
        const std::uint64_t offset = range.address - reinterpret_cast<std::uint64_t>(table.base());
        const slab_run run{table.slab_at(offset), static_cast<slab_number>(range.slabs)};
        if (offset >= table.size() || offset % Geometry.slab != 0)
          throw snapshot_error(path +
                               ": its addresses lie outside this tree's range; make the tree "
                               "with snapshot_options");
        if (tree.claim(node, run) != region_status::ok)
          throw snapshot_error(path + ": its addresses are in use by another region");
        detail::restore(in, table, run, body, next_slab);
        if (node.it->pool.adopt(run) != region_status::ok)
          throw snapshot_error(path + ": no memory for metadata");
        next_slab += range.slabs;
      }
    }
  } catch (...) {
    if (!ids.empty()) tree.destroy_region(ids[0]);
    throw;
  }
  return {ids[0], reinterpret_cast<void*>(header.root)};  // NOLINT
}

}  // namespace quarry
