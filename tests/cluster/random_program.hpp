// SPDX-License-Identifier: Apache-2.0
#pragma once
/// random_program: the part of one worker in a random program of all calls, valid and invalid. The
/// seed determines the program, and the oracle checks every result. All workers share the oracle,
/// so they run in a simulation.

#include "oracle.hpp"

#include <cstring>
#include <functional>
#include <random>

namespace quarry::cluster::testing {

struct program_options {
  std::uint64_t seed = 1;
  unsigned rounds = 4;   // each ends with a barrier and transfers in pairs
  unsigned calls = 100;  // per worker and round
  bool leases = true;
  std::uint64_t capacity = 0;
  /// Whether the oracle has reported something: the program then ends early.
  std::function<bool()> has_failed = [] { return ::testing::Test::HasFailure(); };
};

class random_program {
 public:
  random_program(worker& w, oracle& o, const program_options& options)
      : w_(w), oracle_(o), options_(options), random_(options.seed * 1'000'003 + w.number()) {}

  void run() {
    for (unsigned round = 0; round < options_.rounds && !options_.has_failed(); ++round) {
      for (unsigned i = 0; i < options_.calls && !options_.has_failed(); ++i) step();
      flush();
      w_.barrier();
      transfer(round);
      w_.barrier();
    }
    if (w_.number() == 0) clean_up();
  }

 private:
  static void expect(region_status got, region_status wanted, const char* what) {
    EXPECT_EQ(got, wanted) << what << ": " << to_text(got);
  }
  rid known_region() {
    if (!mine_.empty() && random_() % 4 != 0) return mine_[random_() % mine_.size()];
    return random_() % 3 == 0 ? root : oracle_.any_region(random_);
  }
  std::uint64_t some_size() {
    switch (random_() % 16) {
      case 0: return 1 + random_() % 9000;
      case 1: return random_() % 64 == 0 ? 1 + random_() % (3u << 20) : 4096;
      case 2: return 1 + random_() % 600;
      default: return 64 * (1 + random_() % 6) - random_() % 8;
    }
  }
  std::uint64_t some_object() {
    if (!objects_.empty() && random_() % 4 != 0) {
      const std::size_t i = random_() % objects_.size();
      const std::uint64_t at = objects_[i];
      objects_[i] = objects_.back();
      objects_.pop_back();
      return at;
    }
    return oracle_.any_object(random_);
  }
  static void* pointer(std::uint64_t at) { return reinterpret_cast<void*>(at); }

  void freeing(rid region) {
    freed_in_.push_back(region);
    ++oracle_.regions[region].frees;
  }
  void flush() {
    expect(w_.flush(), region_status::ok, "flush");
    for (const rid region : freed_in_) --oracle_.regions[region].frees;
    freed_in_.clear();
  }

  void step() {
    ++oracle_.calls;
    if (random_() % 8 == 0) flush();
    const unsigned what = static_cast<unsigned>(random_() % 100);
    if (what < 6) return create();
    if (what < 9) return free_region();
    if (what < 50) return alloc();
    if (what < 80) return free();
    if (what < 85) return realloc();
    if (what < 88) return bulk();
    if (what < 91) return size_of();
    if (what < 93) return pack();
    bad();
  }

  void create() {
    const rid parent = known_region();
    const auto began = oracle_.tick();
    const auto got = w_.create_region(parent, static_cast<int>(random_() % 6) - 1);
    oracle_.tick();
    if (got) {
      oracle_.created(*got, parent, began);
      mine_.push_back(*got);
    } else {
      expect(got.status, region_status::stale_region, "create");
      oracle_.stale(parent, "create");
    }
  }

  void free_region() {
    const rid id = known_region();
    if (id == root) return expect(w_.destroy_region(id), region_status::is_root, "free the root");
    flush();
    if (!oracle_.may_free(id)) return;
    const auto fate = oracle_.regions.find(id);
    const bool had_died = fate->second.dying != oracle::never;
    const auto began = oracle_.tick();
    oracle_.begin_free(id);
    const region_status s = w_.destroy_region(id);
    oracle_.tick();
    if (s == region_status::ok) {
      EXPECT_GE(fate->second.dead, began) << "a region was freed twice";
      oracle_.end_free(id);
    } else {
      expect(s, region_status::stale_region, "free_region");
      EXPECT_TRUE(had_died || fate->second.dying < began || freed_by_others(id, began))
          << "a live region was reported stale";
    }
    std::erase(mine_, id);
  }
  /// If two workers destroy a region at the same time, one of them finds it stale.
  bool freed_by_others(rid, oracle::time) const { return w_.count() > 1; }

  void alloc() {
    const rid region = known_region();
    const std::uint64_t size = some_size();
    const std::uint64_t alignment = random_() % 16 == 0 ? std::uint64_t{1} << random_() % 14 : 64;
    const auto began = oracle_.tick();
    const auto got = w_.allocate(region, size, alignment);
    oracle_.tick();
    if (got) {
      EXPECT_EQ(reinterpret_cast<std::uint64_t>(*got) % alignment, 0u);
      oracle_.allocated(w_, *got, size, region, began);
      objects_.push_back(reinterpret_cast<std::uint64_t>(*got));
    } else if (got.status == region_status::stale_region) {
      oracle_.stale(region, "alloc");
    } else {
      expect(got.status, region_status::out_of_memory, "alloc");
    }
  }

  void free() {
    const std::uint64_t at = some_object();
    if (at == 0 || oracle_.find(at) == nullptr) return;
    const rid region = oracle_.find(at)->region;
    oracle_.begin_free(w_, at);
    freeing(region);
    const region_status s = w_.deallocate(pointer(at));
    if (!options_.leases) flush();
    if (s == region_status::ok) return;
    EXPECT_FALSE(oracle_.is_alive(region)) << "free: " << to_text(s);
  }

  void realloc() {
    const std::uint64_t at = some_object();
    const oracle::object* o = at == 0 ? nullptr : oracle_.find(at);
    if (o == nullptr || !o->owners.contains(w_.number())) return;
    const rid from = o->region;
    const rid to = random_() % 4 == 0 ? known_region() : from;
    const std::uint64_t size = some_size();
    const std::uint64_t keep = std::min(size, o->size) / 8;
    std::vector<std::uint64_t> before(keep + 1);
    std::memcpy(before.data(), w_.local(static_cast<std::byte*>(pointer(at))), keep * 8);
    const auto began = oracle_.tick();
    // The object leaves the oracle, so that no other worker deallocates it; it returns on failure.
    const oracle::object was = *o;
    oracle_.begin_free(w_, at);
    freeing(from);
    const auto got = w_.reallocate(pointer(at), size, to);
    if (!options_.leases) flush();
    oracle_.tick();
    if (got) {
      // This worker made no other call, so the bytes are unchanged since the reallocation.
      EXPECT_TRUE(!oracle_.is_alive(to) ||
                  std::memcmp(before.data(), w_.local(static_cast<std::byte*>(*got)), keep * 8) ==
                      0)
          << "realloc lost bytes";
      oracle_.allocated(w_, *got, size, to, began);
      objects_.push_back(reinterpret_cast<std::uint64_t>(*got));
    } else {
      if (got.status == region_status::stale_region)
        oracle_.stale(to, "realloc");
      else
        EXPECT_TRUE(got.status == region_status::out_of_memory || !oracle_.is_alive(from))
            << "realloc: " << to_text(got.status);
      if (oracle_.is_alive(from)) oracle_.allocated(w_, pointer(at), was.size, from, began);
    }
  }

  void bulk() {
    const rid region = known_region();
    const std::uint64_t size = 64 * (1 + random_() % 12);
    std::vector<void*> out(random_() % 60);
    const auto began = oracle_.tick();
    const region_status s = w_.allocate_bulk(region, size, out);
    oracle_.tick();
    if (s == region_status::ok) {
      for (void* p : out) {
        oracle_.allocated(w_, p, size, region, began);
        objects_.push_back(reinterpret_cast<std::uint64_t>(p));
      }
    } else if (s == region_status::stale_region) {
      oracle_.stale(region, "alloc_bulk");
    } else {
      expect(s, region_status::out_of_memory, "alloc_bulk");
    }
  }

  void size_of() {
    const std::uint64_t at = oracle_.any_object(random_);
    if (at == 0) return;
    const std::uint64_t serial = oracle_.find(at)->serial;
    const auto got = w_.usable_size(pointer(at));
    const oracle::object* o = oracle_.find(at);
    if (o == nullptr || o->serial != serial) return;  // deallocated in the meantime
    EXPECT_TRUE(got) << to_text(got.status);
    EXPECT_GE(*got, o->size);
  }

  void pack() {
    const rid region = known_region();
    const auto before = oracle_.all_in(region);
    const auto began = oracle_.tick();
    const auto got = w_.pack(region);
    oracle_.tick();
    if (!got) return oracle_.stale(region, "pack");
    oracle_.must_have_lived(region, began, "pack");
    oracle_.packed(region, got->ranges, before);
  }

  void bad() {
    switch (random_() % 9) {
      case 0: return expect(w_.allocate(root, 0).status, region_status::zero_size, "nothing");
      case 1:
        return expect(w_.allocate(root, options_.capacity + 1).status, region_status::too_large,
                      "too much");
      case 2:
        return expect(w_.allocate(root, 64, 48).status, region_status::bad_alignment, "alignment");
      case 3: {
        const rid id{random_()};
        if (oracle_.regions.contains(id)) return;
        return expect(w_.allocate(id, 64).status, region_status::stale_region,
                      "a region that never existed");
      }
      case 4: {
        const rid id{random_()};
        if (oracle_.regions.contains(id)) return;
        return expect(w_.destroy_region(id), region_status::stale_region, "free what never was");
      }
      case 5: return expect(w_.deallocate(nullptr), region_status::ok, "free nothing");
      case 6: {  // inside an object, or at a random address
        const std::uint64_t at = random_() % 2 == 0 ? random_() : oracle_.any_object(random_) + 8;
        if (at == 8) return;
        const region_status s = w_.usable_size(pointer(at)).status;
        EXPECT_TRUE(s == region_status::not_ours || s == region_status::not_an_object)
            << to_text(s);
        return;
      }
      case 7: {
        if (options_.leases) return;  // flush() would report the failure
        const region_status s = w_.deallocate(pointer(random_()));
        EXPECT_TRUE(s == region_status::not_ours || s == region_status::not_an_object)
            << to_text(s);
        return;
      }
      default: {
        rid none[1] = {root};
        return expect(w_.send(w_.number(), none), region_status::no_such_worker, "send to oneself");
      }
    }
  }

  /// Transfers in pairs; the lower number sends first. One receiver in eight expects another
  /// region.
  void transfer(unsigned round) {
    const unsigned peer = w_.number() ^ (1 + round % 3);
    if (peer >= w_.count()) return;
    if (w_.number() < peer) {
      send(peer);
      receive(peer);
    } else {
      receive(peer);
      send(peer);
    }
  }
  struct promise {
    rid region = root;
    std::map<std::uint64_t, std::uint64_t> objects;
  };
  static std::map<std::pair<unsigned, unsigned>, promise>& promises() {
    static std::map<std::pair<unsigned, unsigned>, promise> all;
    return all;
  }
  void send(unsigned peer) {
    promise& p = promises()[{w_.number(), peer}];
    p.region = mine_.empty() ? root : mine_[random_() % mine_.size()];
    p.objects = oracle_.had_by(w_.number(), p.region);
    const rid regions[1] = {p.region};
    const region_status s = w_.send(peer, regions);
    if (s == region_status::mismatch) return;
    if (s == region_status::stale_region) return oracle_.stale(p.region, "send");
    expect(s, region_status::ok, "send");
  }
  void receive(unsigned peer) {
    rid regions[1] = {root};
    const bool wrong = random_() % 8 == 0;
    if (wrong) regions[0] = rid{~std::uint64_t{0}};
    const region_status s = w_.receive(peer, regions);
    const promise& p = promises()[{peer, w_.number()}];
    if (s == region_status::stale_region) return oracle_.stale(p.region, "receive");
    if (wrong) return expect(s, region_status::mismatch, "receive what was not sent");
    expect(s, region_status::ok, "receive");
    EXPECT_EQ(regions[0], p.region);
    oracle_.received(w_, p.region, p.objects);
  }

  /// Destroys the remaining children of the root, then deallocates the remaining objects of the
  /// root.
  void clean_up() {
    for (const rid id : std::set<rid>(oracle_.regions[root].children))
      if (oracle_.is_alive(id)) {
        oracle_.tick();
        oracle_.begin_free(id);
        expect(w_.destroy_region(id), region_status::ok, "the last deallocation");
        oracle_.tick();
        oracle_.end_free(id);
      }
    while (const std::uint64_t at = oracle_.any_object(random_)) {
      oracle_.begin_free(w_, at);
      expect(w_.deallocate(pointer(at)), region_status::ok, "the last deallocation");
    }
    expect(w_.flush(), region_status::ok, "the last flush");
  }

  worker& w_;
  oracle& oracle_;
  program_options options_;
  std::mt19937_64 random_;
  std::vector<rid> mine_;
  std::vector<rid> freed_in_;           // regions of deallocations since the last flush
  std::vector<std::uint64_t> objects_;  // allocated by this worker, perhaps deallocated since
};

}  // namespace quarry::cluster::testing
