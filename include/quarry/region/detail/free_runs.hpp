// SPDX-License-Identifier: Apache-2.0
#pragma once
/// free_runs: the free slabs of one owner, as maximal runs.
///
///   by address    a trie, first slab -> length: the lowest run, the nearest run
///   by length     lists; eight from one power of two to the next, one per length below 16
///   by neighbour  the units of its first and last slab mark a run (slab_table.hpp)
///
/// Lyberis et al. (2012) use the trie alone. Inserting into a trie may need memory, but deallocate
/// must not fail. Here the marks and lists are authoritative and need no memory. A run for which
/// the trie finds no node is still found by length and by its neighbours.
///
/// Invariants:
///   the first and last slab of each run are marked, and no slab next to a run is marked
///   each run is in exactly one list
///   each entry of the trie is a run
///   no two runs are adjacent
/// Complexity: insert, take and take_nearest inspect a bounded number of runs and do a bounded
/// number of trie operations, with one exception: a take that finds no run in a longer list scans
/// the list of its own length.
/// Thread safety: none; the caller holds the lock of the owner, if there is one.

#include <quarry/region/detail/pool_source.hpp>

#include <bit>
#include <string>

namespace quarry {

template <slab_geometry Geometry, trie_node_source Nodes>
class free_runs {
 public:
  using table_type = slab_table_view<Geometry>;
  using index_type = trie<0, 32, Nodes>;

  free_runs(const table_type& table, pool_stamp owner, Nodes& nodes)
      : table_(table), owner_(owner), index_(nodes) {
    for (slab_number& head : bins_) head = no_slab;
  }

  /// Adds slabs and joins adjacent runs. Requires: the owner owns the slabs, they are in no run,
  /// and their units are none.
  void insert(slab_run run);

  /// Removes `count` slabs from the lowest of the first `looks` runs that is long enough, otherwise
  /// from any run that is. Empty: no run is long enough. The number of the first slab is a multiple
  /// of `alignment`, a power of two.
  slab_run take(slab_number count, slab_number alignment = 1);

  /// Removes a multiple of `unit` slabs, at most `most`, from the run that take(unit) would use.
  /// Requires unit <= most.
  slab_run take_multiple(slab_number unit, slab_number most);

  /// As take_multiple, from the end next to `place` of the nearest run: of the first `looks` runs
  /// above and below `place`, those count that are long enough and start below `limit`. Empty: none
  /// does.
  slab_run take_nearest(slab_run place, slab_number limit, slab_number unit, slab_number most);

  /// Removes exactly these slabs. False: one of them is not free.
  bool take_at(slab_run wanted);

  /// Returns the run that ends before `end`, or that starts at `first`; empty: there is none.
  slab_run ending_at(slab_number end) const;
  slab_run starting_at(slab_number first) const;

  /// Returns the run with the highest address in the trie; empty: the trie is empty.
  slab_run highest() const {
    const auto it = index_.last();
    return it ? run_at(it) : slab_run{};
  }
  void remove(slab_run run);

  std::uint64_t slabs() const { return slabs_; }
  std::uint64_t runs() const { return runs_; }

  /// Visits the lists of the longest runs first.
  template <class Visit>
  void for_each(Visit visit) const {
    for (unsigned bin = bins; bin-- > 0;)
      for (slab_number n = bins_[bin]; n != no_slab;) {
        const slab_run run{n, length(n)};
        n = table_.links(n).next;
        visit(run);
      }
  }

  /// Drops the trie without returning its nodes; their source is discarded as a whole.
  void forget() { index_.forget(); }

  std::string check_invariants() const;

 private:
  static constexpr unsigned looks = 8;  // runs inspected by address, and in a list

  // A request takes a run that is little longer, so that the remainder of a run is mostly nothing
  // or long. Power-of-two lists leave many runs that are too short for the next request.
  static constexpr unsigned steps = 8;  // lists per power of two
  static constexpr unsigned bins = 32 * steps;
  static unsigned bin_of(slab_number count) {
    if (count < 2 * steps) return count;
    const auto shift = static_cast<unsigned>(std::bit_width(count) - std::bit_width(steps));
    return shift * steps + (count >> shift);
  }
  /// Returns the first list that is not empty, from `bin` on; `bins`: there is none.
  unsigned filled_from(unsigned bin) const {
    for (unsigned word = bin / 64; bin < bins; bin = ++word * 64)
      if (const std::uint64_t filled = filled_[word] & (~std::uint64_t{0} << bin % 64); filled != 0)
        return word * 64 + static_cast<unsigned>(std::countr_zero(filled));
    return bins;
  }
  static slab_run run_at(const typename index_type::iterator& it) {
    return {static_cast<slab_number>(it.key()), static_cast<slab_number>(it.value())};
  }
  slab_number length(slab_number n) const {
    return static_cast<slab_number>(table_.links(n).count);
  }
  void mark(slab_number n, std::uint16_t as, slab_number count) const {
    table_.units(n) = as;
    table_.live(n) = 0;
    table_.links(n).count = count;
  }
  void add(slab_run run);
  slab_run find(slab_number count) const;
  slab_run cut(slab_run from, slab_run part);

  table_type table_;
  pool_stamp owner_;
  index_type index_;
  std::uint64_t filled_[bins / 64] = {};  // bit k: list k is not empty
  slab_number bins_[bins];                // first run of each list
  std::uint64_t slabs_ = 0;
  std::uint64_t runs_ = 0;
};

template <slab_geometry Geometry, trie_node_source Nodes>
void free_runs<Geometry, Nodes>::insert(slab_run run) {
  if (const slab_run left = ending_at(run.first)) {
    remove(left);
    run = {left.first, left.count + run.count};
  }
  if (const slab_run right = starting_at(run.end())) {
    remove(right);
    run.count += right.count;
  }
  add(run);
}

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run free_runs<Geometry, Nodes>::take(slab_number count, slab_number alignment) {
  const std::uint64_t room = std::uint64_t{count} + (alignment - 1);
  if (count == 0 || room > slabs_) return {};
  const slab_run from = find(static_cast<slab_number>(room));
  if (!from) return {};
  const slab_number first = (from.first + alignment - 1) & ~(alignment - 1);
  return cut(from, {first, count});
}

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run free_runs<Geometry, Nodes>::take_multiple(slab_number unit, slab_number most) {
  if (unit == 0 || unit > slabs_) return {};
  const slab_run from = find(unit);
  if (!from) return {};
  return cut(from, {from.first, std::min(from.count, most) / unit * unit});
}

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run free_runs<Geometry, Nodes>::take_nearest(slab_run place, slab_number limit,
                                                  slab_number unit, slab_number most) {
  if (unit == 0 || unit > slabs_) return {};
  const auto fits = [&](slab_run run) { return run.count >= unit && run.first < limit; };
  slab_run above, below;
  auto it = index_.at_or_above(place.end());
  for (unsigned i = 0; i < looks && it && !fits(above); ++i, ++it) above = run_at(it);
  it = place.first == 0 ? index_.end() : index_.at_or_below(place.first - 1);
  for (unsigned i = 0; i < looks && it && !fits(below); ++i, --it) below = run_at(it);
  if (!fits(above) && !fits(below)) return {};
  const bool is_above =
      fits(above) && (!fits(below) || above.first - place.end() <= place.first - below.end());
  const slab_run from = is_above ? above : below;
  const slab_number count = std::min(from.count, most) / unit * unit;
  return cut(from, {is_above ? from.first : from.end() - count, count});
}

template <slab_geometry Geometry, trie_node_source Nodes>
bool free_runs<Geometry, Nodes>::take_at(slab_run wanted) {
  const auto holds = [&](slab_run run) {
    return run.first <= wanted.first && wanted.end() <= run.end();
  };
  slab_run from;
  if (const auto it = index_.at_or_below(wanted.first)) from = run_at(it);
  // The trie had no node for the run. Marks inside a run may be stale, so all runs are inspected.
  if (!holds(from) && index_.size() != runs_)
    for_each([&](slab_run run) {
      if (holds(run)) from = run;
    });
  if (!holds(from)) return false;
  cut(from, wanted);
  return true;
}

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run free_runs<Geometry, Nodes>::ending_at(slab_number end) const {
  if (end == 0 || table_.owner(end - 1) != owner_) return {};
  const slab_number last = end - 1;
  const slab_number count = length(last);
  if (table_.units(last) == slab_units::run_end) return {end - count, count};
  return table_.units(last) == slab_units::run && count == 1 ? slab_run{last, 1} : slab_run{};
}

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run free_runs<Geometry, Nodes>::starting_at(slab_number first) const {
  if (table_.owner(first) != owner_ || table_.units(first) != slab_units::run) return {};
  return {first, length(first)};
}

template <slab_geometry Geometry, trie_node_source Nodes>
void free_runs<Geometry, Nodes>::add(slab_run run) {
  const unsigned bin = bin_of(run.count);
  mark(run.end() - 1, slab_units::run_end, run.count);
  mark(run.first, slab_units::run, run.count);
  slab_links& r = table_.links(run.first);
  r.prev = no_slab;
  r.next = bins_[bin];
  if (r.next != no_slab) table_.links(r.next).prev = run.first;
  bins_[bin] = run.first;
  filled_[bin / 64] |= std::uint64_t{1} << bin % 64;
  slabs_ += run.count;
  ++runs_;
  index_.insert(run.first, run.count);  // if this fails, the run is found by length alone
}

template <slab_geometry Geometry, trie_node_source Nodes>
void free_runs<Geometry, Nodes>::remove(slab_run run) {
  const unsigned bin = bin_of(run.count);
  const slab_links& r = table_.links(run.first);
  (r.prev == no_slab ? bins_[bin] : table_.links(r.prev).next) = r.next;
  if (r.next != no_slab) table_.links(r.next).prev = r.prev;
  if (bins_[bin] == no_slab) filled_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
  table_.units(run.first) = table_.units(run.end() - 1) = slab_units::none;
  slabs_ -= run.count;
  --runs_;
  index_.erase(run.first);
}

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run free_runs<Geometry, Nodes>::find(slab_number count) const {
  auto it = index_.begin();
  for (unsigned i = 0; i < looks && it; ++i, ++it)
    if (it.value() >= count) return run_at(it);
  const unsigned bin = bin_of(count);
  slab_number n = bins_[bin];
  for (unsigned i = 0; i < looks && n != no_slab; ++i, n = table_.links(n).next)
    if (length(n) >= count) return {n, length(n)};
  // Every run of a longer list fits. Without one, the rest of this list is searched.
  if (const unsigned longer = filled_from(bin + 1); longer != bins)
    n = bins_[longer];
  else
    while (n != no_slab && length(n) < count) n = table_.links(n).next;
  return n == no_slab ? slab_run{} : slab_run{n, length(n)};
}

template <slab_geometry Geometry, trie_node_source Nodes>
slab_run free_runs<Geometry, Nodes>::cut(slab_run from, slab_run part) {
  remove(from);
  if (part.first > from.first) add({from.first, part.first - from.first});
  if (part.end() < from.end()) add({part.end(), from.end() - part.end()});
  return part;
}

template <slab_geometry Geometry, trie_node_source Nodes>
std::string free_runs<Geometry, Nodes>::check_invariants() const {
  std::string fault = index_.check_invariants();
  std::uint64_t slabs = 0, runs = 0, indexed = 0;
  for_each([&](slab_run run) {
    slabs += run.count;
    ++runs;
    const std::string name = "the free run at slab " + std::to_string(run.first);
    if (starting_at(run.first).count != run.count || ending_at(run.end()).count != run.count)
      fault = name + " is not what its slabs say";
    if (starting_at(run.end()) || ending_at(run.first)) fault = name + " touches another";
    if (const std::uint64_t* value = index_.find(run.first)) {
      ++indexed;
      if (*value != run.count) fault = name + " has another length in the index";
    }
  });
  if (slabs != slabs_ || runs != runs_) fault = "the free runs do not add up";
  if (indexed != index_.size()) fault = "the index of free runs has an entry too many";
  return fault;
}

}  // namespace quarry
