// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: loading of snapshots. An input is a snapshot without the contents of its slabs; the
/// target adds them, with the checksums and the sizes that depend on them. A snapshot that is
/// loaded leaves a consistent tree; one that is rejected leaves the tree unchanged.
#include "fuzz/fuzz.hpp"

#include <quarry/region/snapshot.hpp>

#include <cstring>
#include <filesystem>
#include <iterator>

namespace quarry::fuzz::snapshot {
namespace {

region_tree& tree() {
  static region_tree the_tree = [] {
    tree_options options;
    options.where = snapshot_address;
    options.range = 64 << 20;
    options.metadata = 16 << 20;
    options.threads = sharing::one_thread;
    return region_tree(options);
  }();
  return the_tree;
}

/// Sets the fields of the header that follow from the rest of the file.
std::string completed(std::string_view text) {
  snapshot_header header;
  std::memcpy(&header, text.data(), sizeof header);
  std::string body(text.substr(sizeof header));
  const std::uint64_t before_slabs =
      header.regions * sizeof(snapshot_region) + header.ranges % 64 * sizeof(snapshot_range);
  if (before_slabs <= body.size() && (body.size() - before_slabs) % sizeof(snapshot_slab) == 0)
    header.slabs = (body.size() - before_slabs) / sizeof(snapshot_slab);
  body.append(header.used_slabs % 64 * default_geometry.slab, 'x');
  header.body_bytes = body.size();
  snapshot_sum sum;
  sum.add(body.data(), body.size());
  header.body_sum = sum.value();
  header.header_sum = snapshot_sum::of(header);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

void check_unchanged() {
  require(tree().regions() == 1, "regions remain");
  require(tree().check_invariants().empty(), tree().check_invariants());
}

void use(const loaded_snapshot& loaded) {
  require(tree().check_invariants().empty(), tree().check_invariants());
  for (const std::size_t size : {16u, 1000u, 10'000u, 500'000u})
    (void)tree().allocate(loaded.id, size);
  require(tree().check_invariants().empty(), tree().check_invariants());
  require(tree().destroy_region(loaded.id) == region_status::ok, "cannot destroy the regions");
}

void run(input bytes) {
  if (bytes.size() < sizeof(snapshot_header)) return;
  static const memory_file file;
  file.set(completed(text_of(bytes)));
  try {
    use(load_snapshot(tree(), file.path()));
  } catch (const snapshot_error&) {
  }
  check_unchanged();
}

/// Saves a region and returns the file without the contents of slabs.
std::string saved(region_id id) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("quarry_fuzz_snapshot_" + std::to_string(::getpid()));
  save_snapshot(tree(), id, path);
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::filesystem::remove(path);
  snapshot_header header;
  std::memcpy(&header, text.data(), sizeof header);
  text.resize(text.size() - header.used_slabs * default_geometry.slab);
  return text;
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  const region_id id = *tree().create_region(root_region);
  all.push_back(saved(id));
  for (const std::size_t size : {64u, 100u, 3000u, 5000u}) (void)tree().allocate(id, size);
  all.push_back(saved(id));
  const region_id child = *tree().create_region(id, sharing::many_threads);
  for (const std::size_t size : {64u, 6000u, 50'000u}) (void)tree().allocate(child, size);
  (void)tree().create_region(child);
  all.push_back(saved(id));
  require(tree().destroy_region(id) == region_status::ok, "cannot destroy the regions");
  return all;
}

}  // namespace
}  // namespace quarry::fuzz::snapshot

QUARRY_FUZZ_TARGET(snapshot, quarry::fuzz::snapshot::run, quarry::fuzz::snapshot::seeds, 1000);
