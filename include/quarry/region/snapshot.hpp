// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Snapshots: a region and its descendants in a file. A later run of the program restores them at
/// the same addresses, so that pointers between their objects stay valid.
///
///   save_snapshot(tree, id, "document.snap", first_node);
///   ...another run...
///   region_tree tree(snapshot_options("document.snap"));      // reserves the same addresses
///   auto [id, root] = load_snapshot(tree, "document.snap");   // root == first_node
///
/// load_snapshot checks the whole file (length, checksums, consistency of every slab) before it
/// changes the tree. Then it claims the addresses; if one is in use, it returns those claimed so
/// far. Regions get new ids. Registered destructors are not saved, since functions may have other
/// addresses in the next run. Pointers out of the regions, including vtable pointers, are the
/// caller's responsibility.
/// save_snapshot writes a temporary file and renames it: an interrupted save keeps the old file.

#include <quarry/core/config.hpp>
#include <quarry/region/detail/snapshot_file.hpp>
#include <quarry/region/tree.hpp>

#include <string>

namespace quarry {

/// An address at which a tree can usually be placed in every run. ThreadSanitizer's shadow memory
/// fills the middle of the address space and leaves 340 GiB below the program.
#if QUARRY_TSAN
inline void* const snapshot_address = reinterpret_cast<void*>(0x5500'0000'0000);
#else
inline void* const snapshot_address = reinterpret_cast<void*>(0x2000'0000'0000);
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

/// Saves a region and its descendants. load_snapshot returns `root`, an address of the caller's
/// choice. Throws snapshot_error. Requires: no thread changes the regions during the call.
void save_snapshot(region_tree& tree, region_id id, const std::string& path,
                   const void* root = nullptr);

/// Restores the regions of a snapshot under `parent`. Throws snapshot_error and leaves the tree
/// unchanged if the file is damaged or if its addresses are in use.
loaded_snapshot load_snapshot(region_tree& tree, const std::string& path,
                              region_id parent = root_region);

}  // namespace quarry
