// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/snapshot.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace quarry {
namespace {

using table_view = slab_table_view<default_geometry>;

/// Returns whether a pool can have written these slabs. Appends to `used` which of them hold
/// objects.
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
      if (s.units == 0 || s.units > default_geometry.most_units()) return false;
      length = default_geometry.group_of(s.units);
      if (length > slabs.size() - at) return false;
      for (unsigned i = 0; i < length; ++i) {
        const snapshot_slab& t = slabs[at + i];
        if (t.units != s.units || t.place != i || (t.free & t.live) != 0 ||
            (t.free | t.live) != default_geometry.starts(s.units, static_cast<unsigned>(length), i))
          return false;
      }
      std::uint32_t mask = 0;
      for (unsigned i = 0; i < length; ++i)
        if (slabs[at + i].live != 0) {
          const unsigned last =
              i * default_geometry.units_in_slab() + log2_floor(slabs[at + i].live);
          for (unsigned j = i; j <= (last + s.units - 1) / default_geometry.units_in_slab(); ++j)
            mask |= 1u << j;
        }
      for (unsigned i = 0; i < length; ++i) used.push_back((mask >> i & 1) != 0);
    }
    at += length;
  }
  return true;
}

/// The checked contents of a file, without the contents of slabs.
struct snapshot_body {
  std::vector<snapshot_region> regions;
  std::vector<snapshot_range> ranges;
  std::vector<snapshot_slab> slabs;
  std::vector<bool> used;  // for each slab: whether the file has its contents
};

/// Reads the whole file once and compares length and checksum with the header.
void check_sum(snapshot_stream& in, const snapshot_header& header) {
  in.seek(sizeof(header));
  std::vector<char> buffer(1 << 20);
  for (std::uint64_t left = header.body_bytes; left > 0;) {
    const std::uint64_t part = std::min<std::uint64_t>(left, buffer.size());
    in.read(buffer.data(), part);
    left -= part;
  }
  if (!in.at_end()) throw snapshot_error(in.path() + ": the file is longer than its header says");
  if (in.sum() != header.body_sum) throw snapshot_error(in.path() + ": is damaged (contents)");
}

template <class T>
std::vector<T> read_all(snapshot_stream& in, std::uint64_t count) {
  std::vector<T> all(count);
  in.read(all.data(), count * sizeof(T));
  return all;
}

snapshot_body read_body(snapshot_stream& in, const snapshot_header& header) {
  const auto wrong = [&] { return snapshot_error(in.path() + ": its contents are inconsistent"); };
  const std::uint64_t most = header.body_bytes;
  if (header.regions == 0 || header.ranges > most || header.slabs > most ||
      header.used_slabs > most ||
      header.regions * sizeof(snapshot_region) + header.ranges * sizeof(snapshot_range) +
              header.slabs * sizeof(snapshot_slab) + header.used_slabs * default_geometry.slab !=
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
    if (body.regions[i].ranges > header.ranges - ranges) throw wrong();
    ranges += body.regions[i].ranges;
  }
  if (ranges != header.ranges) throw wrong();
  for (const snapshot_range& range : body.ranges) {
    if (range.slabs > header.slabs - slabs ||
        !is_sound(std::span(body.slabs).subspan(slabs, range.slabs), body.used))
      throw wrong();
    slabs += range.slabs;
  }
  const auto used =
      static_cast<std::uint64_t>(std::count(body.used.begin(), body.used.end(), true));
  if (slabs != header.slabs || used != header.used_slabs) throw wrong();
  return body;
}

/// Restores the metadata of slabs, and reads the contents of the used slabs from the file.
void restore(snapshot_stream& in, const table_view& table, slab_run run, const snapshot_body& body,
             std::size_t at) {
  for (slab_number i = 0; i < run.count; ++i) {
    const snapshot_slab& slab = body.slabs[at + i];
    table.units(run.first + i) = static_cast<std::uint16_t>(slab.units);
    table.live(run.first + i) = slab.live;
    slab_links& l = table.links(run.first + i);
    l.free = slab.free;
    l.place = static_cast<std::uint8_t>(slab.place);
    l.busy = 0;
    if (body.used[at + i]) in.read(table.address(run.first + i), default_geometry.slab);
  }
}

}  // namespace

snapshot_header snapshot_info(const std::string& path) {
  snapshot_stream in(path);
  const auto header = in.read<snapshot_header>();
  if (header.magic != snapshot_header::magic_number)
    throw snapshot_error(path + ": is not a snapshot of regions");
  if (header.version != snapshot_header::this_version)
    throw snapshot_error(path + ": has version " + std::to_string(header.version) + ", not " +
                         std::to_string(snapshot_header::this_version));
  if (header.header_sum != snapshot_sum::of(header))
    throw snapshot_error(path + ": is damaged (header)");
  return header;
}

tree_options snapshot_options(const std::string& path) {
  const snapshot_header header = snapshot_info(path);
  tree_options options;
  options.where = reinterpret_cast<void*>(header.base);
  options.range = header.range;
  return options;
}

loaded_snapshot load_snapshot(region_tree& tree, const std::string& path, region_id parent) {
  const snapshot_header header = snapshot_info(path);
  if (header.slab != default_geometry.slab || header.page != default_geometry.page ||
      header.slot != default_geometry.slot)
    throw snapshot_error(path + ": was saved with slabs of another size");
  snapshot_stream in(path);
  check_sum(in, header);
  const snapshot_body body = read_body(in, header);

  const table_view& table = tree.table();
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
        const slab_run run{table_view::slab_at(offset), static_cast<slab_number>(range.slabs)};
        if (offset >= table.size() || offset % default_geometry.slab != 0)
          throw snapshot_error(path +
                               ": its addresses lie outside this tree's range; make the tree "
                               "with snapshot_options");
        if (tree.claim(node, run) != region_status::ok)
          throw snapshot_error(path + ": its addresses are in use by another region");
        restore(in, table, run, body, next_slab);
        if (node.it->pool.adopt(run) != region_status::ok)
          throw snapshot_error(path + ": no memory for metadata");
        next_slab += range.slabs;
      }
    }
  } catch (...) {
    if (!ids.empty()) tree.destroy_region(ids[0]);
    throw;
  }
  return {ids[0], reinterpret_cast<void*>(header.root)};
}

}  // namespace quarry
