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
#include <quarry/region/detail/snapshot_file.hpp>
#include <quarry/region/tree.hpp>

#include <string>

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

/// Returns the header of a snapshot. Throws snapshot_error unless it is intact; does not check the
/// rest of the file.
snapshot_header snapshot_info(const std::string& path);

/// Returns options for a tree that can hold the snapshot: the address range it was saved from.
tree_options snapshot_options(const std::string& path);

/// Saves a region and its descendants. load_snapshot returns `root`, an address of the caller's choice.
/// Throws snapshot_error. Requires: no thread changes the regions during the call.
void save_snapshot(region_tree& tree, region_id id, const std::string& path,
                   const void* root = nullptr);

/// Restores the regions of a snapshot under `parent`. Throws snapshot_error and leaves the tree
/// unchanged if the file is damaged or if its addresses are in use.
loaded_snapshot load_snapshot(region_tree& tree, const std::string& path,
                              region_id parent = root_region);

}  // namespace quarry
