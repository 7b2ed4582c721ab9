// SPDX-License-Identifier: Apache-2.0
#pragma once
/// page_book: the pages that a scheduler and those below it have, and who has which.
///
///   free     runs of pages in nobody's hands, by address, neighbours joined
///   given    run -> the child that has it, or the scheduler's own regions
///
/// Lookups are what routing needs: an address that is in neither is somebody else's. Costs grow with
/// the logarithm of the runs; only take looks at free runs one by one.

#include <quarry/cluster/shape.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace quarry::cluster {

struct page_run {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const { return first + count; }
  explicit operator bool() const { return count != 0; }
};

class page_book {
 public:
  /// Pages that were not in the book.
  void add(page_run run) {
    total_ += run.count;
    join(run);
  }

  /// A free run of `wanted` pages or as many as there are in a row, not fewer than `least`, inside
  /// `within`; it is the holder's from now on. Empty: there is none.
  page_run take(std::uint64_t least, std::uint64_t wanted, page_run within, node holder) {
    page_run best;
    for (auto it = after(within.first); it != free_.end() && it->first < within.end(); ++it) {
      const std::uint64_t first = std::max(it->first, within.first);
      const std::uint64_t end = std::min(it->first + it->second, within.end());
      if (first >= end || end - first < least) continue;
      const page_run run{first, std::min(wanted, end - first)};
      if (run.count <= best.count) continue;
      best = run;
      if (best.count == wanted) break;
    }
    if (best) {
      cut(best);
      given_[best.first] = {best.count, holder};
    }
    return best;
  }

  /// The holder gives pages back. False: it does not have all of them.
  bool give_back(page_run run, node holder) {
    std::vector<page_run> parts;
    for (std::uint64_t at = run.first; at < run.end();) {
      const auto it = entry_of(at);
      if (it == given_.end() || it->second.holder != holder) return false;
      const std::uint64_t end = std::min(run.end(), it->first + it->second.count);
      parts.push_back({at, end - at});
      at = end;
    }
    for (const page_run part : parts) {
      const auto it = entry_of(part.first);
      const page_run was{it->first, it->second.count};
      given_.erase(it);
      if (was.first < part.first) given_[was.first] = {part.first - was.first, holder};
      if (part.end() < was.end()) given_[part.end()] = {was.end() - part.end(), holder};
    }
    join(run);
    return true;
  }

  /// Takes up to `most` free pages out of the book, the longest runs first, one run a call.
  page_run remove(std::uint64_t most) {
    page_run best;
    for (const auto& [first, count] : free_)
      if (count > best.count) best = {first, count};
    best.count = std::min(best.count, most);
    if (best) {
      cut(best);
      total_ -= best.count;
    }
    return best;
  }

  struct place {
    bool known = false;
    node holder = no_node;  // no_node: free
  };
  place find(std::uint64_t page) const {
    const auto it = entry_of(page);
    if (it != given_.end()) return {true, it->second.holder};
    auto below = free_.upper_bound(page);
    if (below == free_.begin()) return {};
    --below;
    return {page < below->first + below->second, no_node};
  }

  std::uint64_t free_pages() const { return free_pages_; }
  /// The number of pages that the holder has.
  std::uint64_t pages_of(node holder) const {
    std::uint64_t sum = 0;
    for (const auto& [first, run] : given_) sum += run.holder == holder ? run.count : 0;
    return sum;
  }
  std::uint64_t pages() const { return total_; }

  /// Empty: sound.
  std::string check_invariants() const {
    std::uint64_t sum = 0, free = 0, end = 0;
    bool joined = true;
    for (const auto& [first, count] : free_) {
      joined = joined && (first > end || sum == 0);
      end = first + count;
      sum += count;
    }
    free = sum;
    for (const auto& [first, run] : given_) {
      sum += run.count;
      const auto above = free_.lower_bound(first);
      if (above != free_.end() && above->first < first + run.count)
        return "pages are free and given at once";
    }
    if (!joined) return "free pages touch and are not joined";
    if (free != free_pages_ || sum != total_) return "the pages do not add up";
    return {};
  }

 private:
  struct entry {
    std::uint64_t count;
    node holder;
  };

  std::map<std::uint64_t, std::uint64_t>::iterator after(std::uint64_t page) {
    auto it = free_.upper_bound(page);
    if (it != free_.begin() && std::prev(it)->first + std::prev(it)->second > page) --it;
    return it;
  }
  std::map<std::uint64_t, entry>::const_iterator entry_of(std::uint64_t page) const {
    auto it = given_.upper_bound(page);
    if (it == given_.begin()) return given_.end();
    --it;
    return page < it->first + it->second.count ? it : given_.end();
  }
  void join(page_run run) {
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
  void cut(page_run run) {
    const auto it = std::prev(free_.upper_bound(run.first));
    const page_run was{it->first, it->second};
    free_.erase(it);
    if (was.first < run.first) free_[was.first] = run.first - was.first;
    if (run.end() < was.end()) free_[run.end()] = was.end() - run.end();
    free_pages_ -= run.count;
  }

  std::map<std::uint64_t, std::uint64_t> free_;  // first -> count
  std::map<std::uint64_t, entry> given_;
  std::uint64_t free_pages_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace quarry::cluster
