// SPDX-License-Identifier: Apache-2.0
/// A std::pmr::map in a region, saved to a file and restored: no serialization and no parsing. The
/// nodes come back at their addresses with their pointers intact.
///
/// The map stores a pointer to its memory_resource. The resource has a vtable pointer, which may
/// differ in the next run, so the program constructs the resource again, at the same address.

#include <quarry/region.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace {

using resource = quarry::region::memory_resource;
using dictionary = std::pmr::map<int, std::pmr::string>;

struct document {
  alignas(resource) unsigned char place[sizeof(resource)];
  dictionary words;

  explicit document(quarry::region& in) : words(new (place) resource(in)) {}
  void restore_resource(quarry::region& in) { new (place) resource(in); }
};

void write(const std::string& file) {
  quarry::tree_options options;
  options.where = quarry::snapshot_address;
  options.range = std::uint64_t{64} << 30;
  quarry::region_tree tree(options);
  quarry::region r(tree);
  auto* d = new (r) document(r);
  for (int i = 0; i < 10'000; ++i)
    d->words[i] = "word number " + std::to_string(i) + ", long enough to live outside the string";
  quarry::save_snapshot(tree, r.id(), file, d);
}

bool read(const std::string& file) {
  quarry::region_tree tree(quarry::snapshot_options(file));
  const quarry::loaded_snapshot loaded = quarry::load_snapshot(tree, file);
  quarry::region r = quarry::region::adopt(tree, loaded.id);
  auto* d = static_cast<document*>(loaded.root);
  d->restore_resource(r);
  bool good = d->words.size() == 10'000 && d->words[77].starts_with("word number 77,");
  d->words[10'000] = "and it is a map as before, which can grow, far beyond what was in the file";
  d->words.erase(5);
  good = good && d->words.size() == 10'000;
  std::printf("%zu words restored, invariants hold: %s\n", d->words.size(),
              tree.check_invariants().empty() ? "yes" : "no");
  return good && tree.check_invariants().empty();
}

}  // namespace

int main() {
  const std::string file =
      (std::filesystem::temp_directory_path() / "quarry_region_map_file").string() +
      std::to_string(reinterpret_cast<std::uintptr_t>(std::make_unique<int>().get()));
  write(file);
  const bool good = read(file);
  std::filesystem::remove(file);
  return good ? 0 : 1;
}
