// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/page_table.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace quarry::cluster::detail {

void page_table::add(page_run run) {
  total_ += run.count;
  insert_free(run);
}

page_run page_table::assign(std::uint64_t min_run, std::uint64_t wanted, page_run window,
                            node_id holder) {
  page_run best;
  for (auto it = first_free_at_or_after(window.first);
       it != free_.end() && it->first < window.end(); ++it) {
    const std::uint64_t first = std::max(it->first, window.first);
    const std::uint64_t end = std::min(it->first + it->second, window.end());
    if (first >= end || end - first < min_run) continue;
    const page_run run{first, std::min(wanted, end - first)};
    if (run.count <= best.count) continue;
    best = run;
    if (best.count == wanted) break;
  }
  if (best) {
    erase_free(best);
    assigned_[best.first] = {best.count, holder};
  }
  return best;
}

bool page_table::release(page_run run, node_id holder) {
  std::vector<page_run> parts;
  for (std::uint64_t at = run.first; at < run.end();) {
    const auto it = assignment_of(at);
    if (it == assigned_.end() || it->second.holder != holder) return false;
    const std::uint64_t end = std::min(run.end(), it->first + it->second.count);
    parts.push_back({at, end - at});
    at = end;
  }
  for (const page_run part : parts) {
    const auto it = assignment_of(part.first);
    const page_run whole{it->first, it->second.count};
    assigned_.erase(it);
    if (whole.first < part.first) assigned_[whole.first] = {part.first - whole.first, holder};
    if (part.end() < whole.end()) assigned_[part.end()] = {whole.end() - part.end(), holder};
  }
  insert_free(run);
  return true;
}

page_run page_table::remove_free(std::uint64_t max_pages) {
  page_run longest;
  for (const auto& [first, count] : free_)
    if (count > longest.count) longest = {first, count};
  longest.count = std::min(longest.count, max_pages);
  if (longest) {
    erase_free(longest);
    total_ -= longest.count;
  }
  return longest;
}

page_table::lookup_result page_table::find(std::uint64_t page) const {
  if (const auto it = assignment_of(page); it != assigned_.end()) return {true, it->second.holder};
  auto below = free_.upper_bound(page);
  if (below == free_.begin()) return {};
  --below;
  return {page < below->first + below->second, no_node};
}

std::uint64_t page_table::free_pages_in(page_run window) const {
  std::uint64_t sum = 0;
  for (auto it = first_free_at_or_after(window.first);
       it != free_.end() && it->first < window.end(); ++it)
    sum += std::min(it->first + it->second, window.end()) - std::max(it->first, window.first);
  return sum;
}

std::uint64_t page_table::pages_of(node_id holder) const {
  std::uint64_t sum = 0;
  for (const auto& [first, run] : assigned_) sum += run.holder == holder ? run.count : 0;
  return sum;
}

std::string page_table::check_invariants() const {
  std::uint64_t sum = 0, end = 0;
  bool merged = true;
  for (const auto& [first, count] : free_) {
    merged = merged && (first > end || sum == 0);
    end = first + count;
    sum += count;
  }
  const std::uint64_t free = sum;
  for (const auto& [first, run] : assigned_) {
    sum += run.count;
    const auto above = free_.lower_bound(first);
    if (above != free_.end() && above->first < first + run.count)
      return "a page is both free and assigned";
  }
  if (!merged) return "adjacent free runs are not merged";
  if (free != free_pages_ || sum != total_) return "the page counts differ from the runs";
  return {};
}

page_table::free_map::const_iterator page_table::first_free_at_or_after(std::uint64_t page) const {
  auto it = free_.upper_bound(page);
  if (it != free_.begin() && std::prev(it)->first + std::prev(it)->second > page) --it;
  return it;
}

page_table::assigned_map::const_iterator page_table::assignment_of(std::uint64_t page) const {
  auto it = assigned_.upper_bound(page);
  if (it == assigned_.begin()) return assigned_.end();
  --it;
  return page < it->first + it->second.count ? it : assigned_.end();
}

void page_table::insert_free(page_run run) {
  free_pages_ += run.count;
  auto it = free_.lower_bound(run.first);
  if (it != free_.begin() && std::prev(it)->first + std::prev(it)->second == run.first) {
    --it;
    run = {it->first, it->second + run.count};
    it = free_.erase(it);
  }
  if (it != free_.end() && it->first == run.end()) {
    run.count += it->second;
    free_.erase(it);
  }
  free_[run.first] = run.count;
}

/// Requires: the pages are free.
void page_table::erase_free(page_run run) {
  const auto it = std::prev(free_.upper_bound(run.first));
  const page_run whole{it->first, it->second};
  free_.erase(it);
  if (whole.first < run.first) free_[whole.first] = run.first - whole.first;
  if (run.end() < whole.end()) free_[run.end()] = whole.end() - run.end();
  free_pages_ -= run.count;
}

}  // namespace quarry::cluster::detail
