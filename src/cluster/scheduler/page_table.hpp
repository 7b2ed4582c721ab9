// SPDX-License-Identifier: Apache-2.0
#pragma once
/// page_table: the pages of a scheduler's subtree, and the holder of each.
///
///   free       runs of pages without a holder, by address; adjacent runs are merged
///   assigned   run -> the child that holds it, or the scheduler itself for its own regions
///
/// Routing by address looks pages up here: a page that is neither free nor assigned belongs to
/// another subtree. All operations cost O(log runs), except assign(), remove_free() and
/// free_pages_in(), which inspect free runs one by one.

#include "cluster/protocol/bodies.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace quarry::cluster::detail {

class page_table {
 public:
  /// Adds free pages. Requires: the table does not contain them.
  void add(page_run run);

  /// Assigns a free run inside `window` to the holder: the first run of `wanted` pages, otherwise
  /// the longest run of at least `min_run`. Returns an empty run if there is none.
  page_run assign(std::uint64_t min_run, std::uint64_t wanted, page_run window, node_id holder);

  /// The holder's pages become free. Returns false, without effect, if it lacks some of them.
  bool release(page_run run, node_id holder);

  /// Removes up to `max_pages` pages of the longest free run from the table and returns them.
  page_run remove_free(std::uint64_t max_pages);

  struct lookup_result {
    bool known = false;        // the page is in the table
    node_id holder = no_node;  // no_node: free
  };
  lookup_result find(std::uint64_t page) const;

  std::uint64_t free_pages() const { return free_pages_; }
  std::uint64_t free_pages_in(page_run window) const;
  std::uint64_t pages() const { return total_; }
  /// The number of pages that the holder has.
  std::uint64_t pages_of(node_id holder) const;

  /// Empty: all invariants hold.
  std::string check_invariants() const;

 private:
  struct assignment {
    std::uint64_t count;
    node_id holder;
  };
  using free_map = std::map<std::uint64_t, std::uint64_t>;
  using assigned_map = std::map<std::uint64_t, assignment>;

  free_map::const_iterator first_free_at_or_after(std::uint64_t page) const;
  assigned_map::const_iterator assignment_of(std::uint64_t page) const;
  void insert_free(page_run run);
  void erase_free(page_run run);

  free_map free_;  // first page -> number of pages
  assigned_map assigned_;
  std::uint64_t free_pages_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace quarry::cluster::detail
