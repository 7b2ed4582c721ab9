// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A slab pool on a range of its own, and a map of what lives in it: state, operations, invariants.
/// Driven by a stream of bytes, from a random generator or from libFuzzer.

#include "region/trie_model.hpp"

#include <quarry/region/detail/definitions.hpp>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace quarry::testing {

/// Slabs from the start of a table, page by page; metadata from a metadata pool. Either can be
/// shut.
template <slab_geometry Geometry>
class whole_table final : public pool_source {
 public:
  whole_table(const slab_table<Geometry>& table, metadata_pool<Geometry>& metadata)
      : table_(&table), metadata_(&metadata) {}

  slab_run more_slabs(slab_number least, slab_number wanted) override {
    const slab_number left = table_->count() - given_;
    if (left < least || !open) return {};
    const slab_number whole = ceil_div(std::max(wanted, chunk), table_->chunk) * table_->chunk;
    const slab_run run{given_, std::min(left, whole)};
    table_->set_owner(run, 77);
    given_ += run.count;
    return run;
  }
  void* take_metadata(std::size_t size) override {
    return metadata_open ? metadata_->allocate(size) : nullptr;
  }
  void give_metadata(void* p, std::size_t) override {
    if (metadata_->deallocate(p) != region_status::ok) std::abort();
  }
  slab_run held() const { return {0, given_}; }

  bool open = true;
  bool metadata_open = true;
  slab_number chunk = 32;

 private:
  const slab_table<Geometry>* table_;
  metadata_pool<Geometry>* metadata_;
  slab_number given_ = 0;
};

/// A table, its metadata, and one pool.
template <slab_geometry Geometry = default_geometry>
struct lone_pool {
  explicit lone_pool(bytes size)
      : table(size),
        metadata(bytes(std::uint64_t{16} << 20)),
        source(table, metadata),
        nodes(source),
        pool(table, 77, source, nodes) {}
  std::string check() const {
    const slab_run held = source.held();
    const std::string fault = pool.check_invariants(std::span(&held, held ? 1 : 0));
    return fault.empty() ? metadata.check_invariants() : fault;
  }

  slab_table<Geometry> table;
  metadata_pool<Geometry> metadata;
  whole_table<Geometry> source;
  node_pool nodes;
  slab_pool<Geometry> pool;
};

template <slab_geometry Geometry = default_geometry>
class pool_model {
 public:
  explicit pool_model(bytes size) : it_(size) {}

  std::string run(std::span<const std::uint8_t> script) {
    byte_stream in(script);
    std::string fault;
    while (!in.done() && fault.empty()) fault = step(in);
    if (fault.empty()) fault = it_.check();
    while (fault.empty() && !live_.empty()) fault = free_at(0);
    if (fault.empty()) fault = it_.check();
    if (fault.empty() && it_.pool.statistics().objects != 0) fault = "objects after all was freed";
    if (fault.empty() && it_.metadata.shortfalls() != 0) fault = "the metadata's reserve ran out";
    return fault;
  }
  std::uint64_t operations() const { return operations_; }
  std::uint64_t failures() const { return failures_; }

 private:
  struct object {
    std::byte* p;
    std::size_t size;
    std::uint8_t fill;
  };

  std::string step(byte_stream& in) {
    ++operations_;
    if (operations_ % 512 == 0)
      if (std::string fault = it_.check(); !fault.empty()) return fault;
    const unsigned op = in.next() % 32;
    if (op < 14) return allocate(draw_size(in), 1);
    if (op == 14) return allocate(draw_size(in), std::size_t{1} << in.next() % 22);
    if (op < 26) return free_at(in.next(2));
    if (op == 26) return bad_free(in);
    if (op < 29) return resize(in.next(2), draw_size(in));
    if (op == 29) return bulk(draw_size(in), in.next() % 40);
    if (op == 30) return shut(in.next());
    it_.pool.reclaim();
    return {};
  }

  /// Mostly the sizes of the paper; then any; then absurd.
  static std::size_t draw_size(byte_stream& in) {
    static constexpr std::size_t usual[] = {64, 192, 1024, 1536, 4096, 50048};
    const std::uint8_t kind = in.next();
    if (kind < 128) return usual[kind % 6];
    if (kind < 200) return in.next() + 1u;
    if (kind < 240) return in.next(2) + 1u;
    if (kind < 250) return in.next(3);
    if (kind == 250) return 0;
    return ~std::size_t{0} >> (in.next() % 40);
  }

  std::string allocate(std::size_t n, std::size_t alignment) {
    void* p = it_.pool.allocate(n, alignment);
    if (p == nullptr) {
      ++failures_;
      return {};
    }
    if (n == 0) return "an object of no bytes";
    if (reinterpret_cast<std::uintptr_t>(p) % std::max(alignment, Geometry.slot) != 0)
      return "a pointer that is not aligned";
    return add(p, n);
  }

  std::string add(void* p, std::size_t n) {
    auto* first = static_cast<std::byte*>(p);
    if (!it_.table.contains(first) || !it_.table.contains(first + n - 1))
      return "outside the range";
    if (it_.pool.usable_size(p) < n) return "less usable than asked for";
    const auto above = by_address_.lower_bound(first);
    if (above != by_address_.end() && above->first < first + n) return "overlaps the next object";
    if (above != by_address_.begin() && std::prev(above)->second > first)
      return "overlaps the object before";
    by_address_.emplace(first, first + n);
    live_.push_back({first, n, static_cast<std::uint8_t>(++fill_)});
    paint(live_.back());
    return {};
  }

  std::string free_at(std::uint64_t draw) {
    if (live_.empty()) return {};
    const std::size_t i = draw % live_.size();
    const object o = live_[i];
    live_[i] = live_.back();
    live_.pop_back();
    by_address_.erase(o.p);
    if (!is_painted(o)) return "an object changed under its owner";
    if (it_.pool.deallocate(o.p) != region_status::ok) return "deallocate rejects a live object";
    if (it_.pool.deallocate(o.p) == region_status::ok) return "deallocate accepts an object twice";
    return {};
  }

  std::string bad_free(byte_stream& in) {
    void* p = reinterpret_cast<void*>(in.next(8));  // NOLINT
    const std::uint8_t kind = in.next();
    if (kind % 4 == 0 && !live_.empty()) p = live_[kind % live_.size()].p + 1 + in.next();
    if (kind % 4 == 1) p = it_.table.base() + in.next(3);
    if (kind % 4 == 2) p = this;
    if (by_address_.contains(static_cast<std::byte*>(p))) return {};
    return it_.pool.deallocate(p) == region_status::ok
               ? "deallocate accepts a pointer that is no object"
               : "";
  }

  std::string resize(std::uint64_t draw, std::size_t n) {
    if (live_.empty()) return {};
    object& o = live_[draw % live_.size()];
    const auto next = std::next(by_address_.find(o.p));
    if (!it_.pool.resize(o.p, n))
      return is_painted(o) ? "" : "a resize that fails changes the object";
    if (n == 0 || it_.pool.usable_size(o.p) < n) return "resized to less than asked for";
    if (next != by_address_.end() && o.p + n > next->first) return "resized into its neighbour";
    o.size = n;
    by_address_[o.p] = o.p + n;
    paint(o);
    return {};
  }

  std::string bulk(std::size_t n, std::size_t count) {
    std::vector<void*> got(count);
    if (!it_.pool.allocate_bulk(n, got)) {
      ++failures_;
      for (void* p : got)
        if (p != nullptr) return "a failed bulk request returns an object";
      return {};
    }
    for (void* p : got)
      if (std::string fault = add(p, n); !fault.empty()) return fault;
    return {};
  }

  std::string shut(std::uint8_t how) {
    it_.source.open = how % 4 != 0;
    it_.source.metadata_open = how % 8 != 1;
    return {};
  }

  /// The ends of the object: enough to see a neighbour's writing.
  static void paint(const object& o) {
    std::memset(o.p, o.fill, std::min<std::size_t>(o.size, 64));
    std::memset(o.p + o.size - std::min<std::size_t>(o.size, 64), o.fill,
                std::min<std::size_t>(o.size, 64));
  }
  static bool is_painted(const object& o) {
    return o.p[0] == std::byte{o.fill} && o.p[o.size - 1] == std::byte{o.fill} &&
           o.p[std::min<std::size_t>(o.size, 64) - 1] == std::byte{o.fill};
  }

  lone_pool<Geometry> it_;
  std::vector<object> live_;
  std::map<std::byte*, std::byte*> by_address_;
  std::uint64_t operations_ = 0;
  std::uint64_t failures_ = 0;
  unsigned fill_ = 0;
};

}  // namespace quarry::testing
