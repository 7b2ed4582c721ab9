// SPDX-License-Identifier: Apache-2.0
#pragma once
/// oracle: a sequential model of a cluster, shared by all simulated workers.
///
/// Calls of different workers overlap. The oracle records when a call begins and ends, and accepts
/// every result that some order of the overlapping calls would give: a call may find a region stale
/// from the moment that a worker began to destroy it, and must from the moment that the destruction
/// was acknowledged. The model removes an object when its deallocation begins and adds an object
/// when its allocation has ended, so that it reports no false errors. The model also knows which
/// workers have the bytes of an object: the worker that allocated it, and workers that received it.
/// The bytes are compared after every transfer and before every deallocation.

#include <quarry/cluster/worker.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace quarry::cluster::testing {

class oracle {
 public:
  using time = std::uint64_t;
  static constexpr time never = ~time{0};

  struct region_model {
    rid parent = root;
    time dying = never;  // a worker began to destroy it or an ancestor
    time dead = never;   // the destruction was acknowledged
    std::set<std::uint64_t> objects;
    std::set<rid> children;
    unsigned frees = 0;  // deallocations of its objects that are not yet acknowledged
  };
  struct object {
    std::uint64_t size = 0;
    std::uint64_t usable = 0;
    rid region = root;
    std::uint64_t serial = 0;
    std::set<unsigned> owners;  // workers that have its bytes
  };

  oracle() { regions[root] = {}; }

  time now() const { return clock_; }
  time tick() { return ++clock_; }

  // ---- regions ----
  void created(rid id, rid parent, time began) {
    EXPECT_FALSE(regions.contains(id)) << "an id was used twice";
    region_model& above = regions[parent];
    EXPECT_GE(above.dead, began) << "a child was created in a destroyed region";
    region_model& r = regions[id];
    r.parent = parent;
    r.dying = above.dying;
    r.dead = above.dead;
    above.children.insert(id);
  }
  void stale(rid id, const char* what) {
    const auto it = regions.find(id);
    EXPECT_TRUE(it == regions.end() || it->second.dying != never)
        << what << ": a live region was reported stale";
  }
  void must_have_lived(rid id, time began, const char* what) {
    const auto it = regions.find(id);
    ASSERT_TRUE(it != regions.end()) << what << ": the region never existed";
    EXPECT_GE(it->second.dead, began) << what << ": the region was destroyed before";
  }
  void begin_free(rid id) {
    for_each_below(id, [&](region_model& r) {
      r.dying = std::min(r.dying, clock_);
      for (const std::uint64_t o : r.objects) live_.erase(o);
      r.objects.clear();
    });
  }
  void end_free(rid id) {
    for_each_below(id, [&](region_model& r) { r.dead = std::min(r.dead, clock_); });
  }
  /// To destroy a region while another worker deallocates an object in it is a race of the program:
  /// the address may belong to another object when the request arrives.
  bool may_free(rid id) {
    bool may = true;
    for_each_below(id, [&](region_model& r) { may = may && r.frees == 0; });
    return may;
  }
  bool is_alive(rid id) const {
    const auto it = regions.find(id);
    return it != regions.end() && it->second.dying == never;
  }

  // ---- objects ----
  void allocated(worker& w, void* p, std::uint64_t size, rid region, time began) {
    const auto at = reinterpret_cast<std::uint64_t>(p);
    must_have_lived(region, began, "alloc");
    if (!is_alive(region)) return;  // the destruction of the region frees the object
    const auto above = live_.upper_bound(at);
    ASSERT_TRUE(above == live_.end() || at + size <= above->first) << "blocks overlap";
    ASSERT_TRUE(above == live_.begin() ||
                std::prev(above)->first + std::prev(above)->second.size <= at)
        << "blocks overlap";
    object& o = live_[at];
    o = {size, align_up(size, 64), region, ++serial_, {w.number()}};
    regions[region].objects.insert(at);
    write_pattern(w, at, o);
  }
  /// Removes the object. Returns false if there is none.
  bool begin_free(worker& w, std::uint64_t at) {
    const auto it = live_.find(at);
    if (it == live_.end()) return false;
    check_pattern(w, at, it->second);
    regions[it->second.region].objects.erase(at);
    live_.erase(it);
    return true;
  }
  const object* find(std::uint64_t at) const {
    const auto it = live_.find(at);
    return it == live_.end() ? nullptr : &it->second;
  }
  object* find(std::uint64_t at) {
    const auto it = live_.find(at);
    return it == live_.end() ? nullptr : &it->second;
  }
  /// A random live object, or 0.
  template <class Random>
  std::uint64_t any_object(Random& random) const {
    if (live_.empty()) return 0;
    const std::uint64_t at =
        live_.begin()->first + random() % (live_.rbegin()->first - live_.begin()->first + 1);
    const auto it = live_.lower_bound(at);
    return it == live_.end() ? live_.begin()->first : it->first;
  }
  template <class Random>
  rid any_region(Random& random) const {
    std::uint64_t skip = random() % regions.size();
    auto it = regions.begin();
    if (regions.size() > 64)
      it = regions.lower_bound(rid{random() & static_cast<std::uint64_t>(regions.rbegin()->first)}),
      skip %= 8;
    if (it == regions.end()) it = regions.begin();
    for (; skip > 0 && std::next(it) != regions.end(); --skip) ++it;
    return it->first;
  }

  /// (address, serial) of the objects in a region and its descendants whose bytes the worker has.
  std::map<std::uint64_t, std::uint64_t> had_by(unsigned worker, rid region) const {
    std::map<std::uint64_t, std::uint64_t> all;
    const_cast<oracle*>(this)->for_each_below(region, [&](region_model& r) {
      for (const std::uint64_t at : r.objects) {
        const object& o = live_.at(at);
        if (o.owners.contains(worker)) all[at] = o.serial;
      }
    });
    return all;
  }
  /// The worker received the region from a worker that had `objects`. It has the bytes of those
  /// that are still live, and of no others in the region, since whole slabs are transferred.
  void received(worker& w, rid region, const std::map<std::uint64_t, std::uint64_t>& objects) {
    for_each_below(region, [&](region_model& r) {
      for (const std::uint64_t at : r.objects) {
        object& o = live_.at(at);
        const auto it = objects.find(at);
        if (it == objects.end() || it->second != o.serial) {
          o.owners.erase(w.number());
          continue;
        }
        o.owners.insert(w.number());
        check_pattern(w, at, o);
      }
    });
  }
  /// The ranges cover all live objects that existed when the call began (`before`).
  void packed(rid region, const std::vector<packed_range>& ranges,
              const std::map<std::uint64_t, std::uint64_t>& before) const {
    for (std::size_t i = 1; i < ranges.size(); ++i)
      ASSERT_LT(ranges[i - 1].address + ranges[i - 1].size, ranges[i].address)
          << "adjacent ranges are not joined";
    const_cast<oracle*>(this)->for_each_below(region, [&](region_model& r) {
      for (const std::uint64_t at : r.objects) {
        const object& o = live_.at(at);
        const auto it = before.find(at);
        if (it == before.end() || it->second != o.serial) continue;
        const auto in = std::find_if(ranges.begin(), ranges.end(), [&](const packed_range& p) {
          const auto first = reinterpret_cast<std::uint64_t>(p.address);
          return first <= at && at + o.size <= first + p.size;
        });
        ASSERT_NE(in, ranges.end()) << "an object is not packed";
      }
    });
  }
  std::map<std::uint64_t, std::uint64_t> all_in(rid region) const {
    std::map<std::uint64_t, std::uint64_t> all;
    const_cast<oracle*>(this)->for_each_below(region, [&](region_model& r) {
      for (const std::uint64_t at : r.objects) all[at] = live_.at(at).serial;
    });
    return all;
  }
  void resized(worker& w, std::uint64_t at, std::uint64_t size) {
    object& o = live_.at(at);
    o.size = size;
    o.serial = ++serial_;
    o.owners = {w.number()};
    write_pattern(w, at, o);
  }

  std::uint64_t live() const { return live_.size(); }
  std::map<rid, region_model> regions;
  std::uint64_t calls = 0;

 private:
  template <class Visit>
  void for_each_below(rid id, Visit visit) {
    const auto it = regions.find(id);
    if (it == regions.end()) return;
    visit(it->second);
    for (const rid child : it->second.children) for_each_below(child, visit);
  }
  static std::uint64_t word(std::uint64_t serial, std::uint64_t i) {
    return (serial * 0x9e37'79b9'7f4a'7c15u) ^ (i * 0x2545'f491'4f6c'dd1du);
  }
  /// Visits the first and the last word of an object, and words in between.
  template <class Visit>
  static void for_each_word(std::uint64_t size, Visit visit) {
    const std::uint64_t words = size / 8;
    const std::uint64_t step = std::max<std::uint64_t>(1, words / 8);
    for (std::uint64_t i = 0; i < words; i += step) visit(i);
    if (words > 0) visit(words - 1);
  }
  static void write_pattern(worker& w, std::uint64_t at, const object& o) {
    auto* p = w.local(reinterpret_cast<std::uint64_t*>(at));
    for_each_word(o.size, [&](std::uint64_t i) { p[i] = word(o.serial, i); });
  }
  static void check_pattern(worker& w, std::uint64_t at, const object& o) {
    if (!o.owners.contains(w.number())) return;
    const auto* p = w.local(reinterpret_cast<const std::uint64_t*>(at));
    for_each_word(o.size, [&](std::uint64_t i) {
      ASSERT_EQ(p[i], word(o.serial, i))
          << "worker " << w.number() << " reads other bytes at " << std::hex << at << ", word " << i
          << " of an object of " << std::dec << o.size;
    });
  }

  time clock_ = 0;
  std::uint64_t serial_ = 0;
  std::map<std::uint64_t, object> live_;
};

}  // namespace quarry::cluster::testing
