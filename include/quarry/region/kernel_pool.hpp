// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kernel_pool: the pool that holds the metadata of all pools, its own included.
///
/// Why that is not obvious: a request may need slabs, to take slabs changes the index of free runs,
/// and the index may need a new node, which is a request to the same pool. Lyberis et al. (2012):
/// requests that arrive while another is served may only flip bits in slabs that are already there,
/// and enough of those are kept in reserve.
///
/// The recursion here has two kinds of nested request: trie nodes (64 B) and class blocks (2 KiB).
/// Let D be the levels of the index. A nested request takes slots from its class's list and nothing
/// else, so it never nests again. What one outer request needs at most, before reserves are topped:
///   one class block                                          1 block
///   slabs from the source joined to the runs                 D nodes   (insert: one entry)
///   a run cut, remainders on both sides                     2D nodes
///   a run cut after reclaim; what reclaim returns           D nodes for each group returned, but
///                                                            insert gives up without harm
/// Topping up a class is again at most "slabs from the source" and "a run cut": 3D nodes, and gives
/// at least a slab of slots. So with `node_reserve` = 6D + 2 free node slots and two block slots at
/// the start of an outer request, no nested request of it or of the topping up of the node class
/// finds its class empty: 3D are spent by each. After the node class the block class is topped up,
/// from a reserve that is full again. A request that would start with less than the reserve, because
/// topping up failed for lack of memory, first tops up, and is refused if that fails.
/// An insert without a node does no harm (free_runs.hpp): even a wrong count above would only cost
/// the index an entry. `shortfalls` counts such events while there was a reserve; tests hold it at 0.
///
/// Frees never ask for memory. A nested free (a node the index gave up) moves a bit and, at most,
/// leaves its group empty: groups go back to the runs only in trim(), when nothing is in progress,
/// so the paper's queue of delayed frees is not needed.
///
/// Bootstrap: before the pool's classes have blocks and the index nodes, nested requests are placed
/// one after another in the first slabs of the range and remembered. Then those slabs are formatted
/// and every remembered object is requested again the normal way; lowest slots come first, so each
/// lands where it lies. The check that it does is part of the bootstrap.
///
/// Not thread-safe: the owner's lock covers it.

#include <quarry/region/slab_pool.hpp>

#include <cstdlib>

namespace quarry {

inline constexpr std::uint64_t kernel_node_reserve = 6 * 11 + 2;

template <slab_geometry Geometry, std::uint64_t Reserve>
class kernel_pool;

/// Nodes for the index of the kernel pool's own free runs: nested requests.
template <slab_geometry Geometry, std::uint64_t Reserve>
struct kernel_nodes {
  kernel_pool<Geometry, Reserve>* kernel;
  void* take_node();
  void give_node(void* p);
};

/// `Reserve` is an argument so that a test can show what happens without one.
template <slab_geometry Geometry = default_geometry, std::uint64_t Reserve = kernel_node_reserve>
class kernel_pool final : private pool_source {
 public:
  /// A range of its own for metadata, `size` at most. Throws out_of_memory.
  explicit kernel_pool(bytes size) : table_(size), pool_(table_, stamp, *this, nodes_) {
    bootstrap();
  }
  kernel_pool(const kernel_pool&) = delete;
  kernel_pool& operator=(const kernel_pool&) = delete;
  ~kernel_pool() { pool_.forget(); }

  /// n bytes, aligned to the slot size. nullptr: n is 0, or the range is full.
  void* allocate(std::size_t n);
  region_status deallocate(void* p);
  std::size_t usable_size(const void* p) const { return pool_.usable_size(p); }
  bool contains(const void* p) const { return table_.contains(p); }

  std::string check_invariants() const;
  pool_statistics statistics() const { return pool_.statistics(); }
  slab_number slabs_begun() const { return begun_; }
  std::uint64_t shortfalls() const { return shortfalls_; }
  /// Fewest node slots that were free at any time since the bootstrap.
  std::uint64_t least_spare_nodes() const { return least_spare_; }
  std::uint64_t spare_nodes() const { return pool_.spare(node_units); }

  static constexpr unsigned index_levels = trie<0, 32, kernel_nodes<Geometry, Reserve>>::levels;
  static_assert(Reserve == 0 || Reserve >= 6 * index_levels + 2, "see above");
  static constexpr std::uint64_t node_reserve = Reserve;
  static constexpr std::uint64_t block_reserve = 2;

 private:
  friend struct kernel_nodes<Geometry, Reserve>;
  static constexpr pool_stamp stamp = 1;
  static constexpr unsigned units_of(std::size_t size) {
    return static_cast<unsigned>((size + Geometry.slot - 1) / Geometry.slot);
  }
  static constexpr unsigned node_units = units_of(sizeof(trie_node));
  static constexpr unsigned block_units = units_of(sizeof(class_block));

  /// The pool, with the parts that a pool serving itself needs.
  struct inner : slab_pool<Geometry, kernel_nodes<Geometry, Reserve>> {
    using base = slab_pool<Geometry, kernel_nodes<Geometry, Reserve>>;
    using base::allocate_here, base::class_of, base::format, base::give_back, base::make_class,
        base::refill, base::keeps_empty_groups_, base::has_no_magazines_;
    using base::base;
    /// Free slots of a class that is made.
    std::uint64_t spare(unsigned units) const {
      const size_class& c = base::class_of(units);
      const std::uint64_t slots = c.group * Geometry.units_in_slab() / units;
      return c.slabs / c.group * slots - c.taken;
    }
  };
  struct bootstrap_places {
    slab_number first = 0;  // slab of the first one
    unsigned units = 0;
    unsigned placed = 0;
  };

  slab_run more_slabs(slab_number least, slab_number wanted) override;
  void* take_metadata(std::size_t size) override { return nested(units_of(size)); }
  void give_metadata(void* p, std::size_t) override { nested_free(p); }

  void* nested(unsigned units);
  void nested_free(void* p);
  bool has_reserve() const {
    return pool_.spare(node_units) >= node_reserve && pool_.spare(block_units) >= block_reserve;
  }
  bool top_up();
  void trim(size_class& c);
  void bootstrap();
  void replay(const bootstrap_places& places);

  slab_table<Geometry> table_;
  kernel_nodes<Geometry, Reserve> nodes_{this};
  slab_number begun_ = 0;
  bool booting_ = true;
  bootstrap_places boot_blocks_;
  bootstrap_places boot_nodes_;
  std::uint64_t shortfalls_ = 0;
  std::uint64_t least_spare_ = ~std::uint64_t{0};
  inner pool_;
};

template <slab_geometry Geometry, std::uint64_t Reserve>
void* kernel_pool<Geometry, Reserve>::allocate(std::size_t n) {
  if (!has_reserve() && !top_up()) return nullptr;
  void* p = pool_.allocate(n);
  top_up();  // may fail: then the next request sees to it
  return p;
}

template <slab_geometry Geometry, std::uint64_t Reserve>
region_status kernel_pool<Geometry, Reserve>::deallocate(void* p) {
  const std::size_t size = pool_.usable_size(p);
  if (const region_status s = pool_.deallocate(p); s != region_status::ok) return s;
  if (size <= Geometry.most_units() * Geometry.slot) trim(pool_.class_of(units_of(size)));
  trim(pool_.class_of(node_units));
  top_up();
  return region_status::ok;
}

/// Groups beyond the lazy ones go back to the free runs, unless they are the reserve.
template <slab_geometry Geometry, std::uint64_t Reserve>
void kernel_pool<Geometry, Reserve>::trim(size_class& c) {
  const std::uint64_t in_group = c.group * Geometry.units_in_slab() / c.units;
  while (c.empty_slabs > inner::kept_slabs) {
    if (c.pinned && pool_.spare(c.units) < 2 * node_reserve + in_group) return;
    if (!pool_.give_back(c)) return;
  }
}

template <slab_geometry Geometry, std::uint64_t Reserve>
bool kernel_pool<Geometry, Reserve>::top_up() {
  while (pool_.spare(node_units) < node_reserve)
    if (!pool_.refill(pool_.class_of(node_units))) return false;
  while (pool_.spare(block_units) < block_reserve)
    if (!pool_.refill(pool_.class_of(block_units))) return false;
  return true;
}

template <slab_geometry Geometry, std::uint64_t Reserve>
slab_run kernel_pool<Geometry, Reserve>::more_slabs(slab_number least, slab_number wanted) {
  const slab_number left = table_.count() - begun_;
  if (left < least) return {};
  const slab_number pages = ceil_div(wanted, Geometry.slabs_in_page()) * Geometry.slabs_in_page();
  const slab_run run{begun_, std::min(left, pages)};
  table_.set_owner(run, stamp);
  begun_ += run.count;
  return run;
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void* kernel_pool<Geometry, Reserve>::nested(unsigned units) {
  if (booting_) {
    bootstrap_places& places = units == block_units ? boot_blocks_ : boot_nodes_;
    return table_.address(places.first) + places.placed++ * units * Geometry.slot;
  }
  void* p = pool_.allocate_here(pool_.class_of(units));
  if (p == nullptr) ++shortfalls_;
  least_spare_ = std::min(least_spare_, pool_.spare(node_units));
  return p;
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void kernel_pool<Geometry, Reserve>::nested_free(void* p) {
  if (pool_.deallocate(p) != region_status::ok) std::abort();  // our own metadata is damaged
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void kernel_pool<Geometry, Reserve>::bootstrap() {
  pool_.keeps_empty_groups_ = pool_.has_no_magazines_ = true;
  // Slabs for blocks, at most two, then slabs for nodes, at most one path of the index.
  const auto usual = [](unsigned units) {
    const slab_number group = Geometry.group_of(units);
    return inner::kept_slabs / group * group;
  };
  boot_blocks_ = {0, block_units, 0};
  boot_nodes_ = {usual(block_units), node_units, 0};
  const slab_number nodes = usual(node_units);
  const slab_number linear = boot_nodes_.first + nodes;
  begun_ = std::min(table_.count(),
                    ceil_div(linear + 1, Geometry.slabs_in_page()) * Geometry.slabs_in_page());
  table_.set_owner({0, begun_}, stamp);
  if (begun_ <= linear) throw out_of_memory("a range for metadata has at least two pages");
  size_class& block_class = *pool_.make_class(block_units);
  size_class& node_class = *pool_.make_class(node_units);
  block_class.pinned = node_class.pinned = true;
  pool_.add_run({linear, begun_ - linear});

  booting_ = false;
  pool_.format(block_class, {0, boot_nodes_.first});
  pool_.format(node_class, {boot_nodes_.first, nodes});
  replay(boot_blocks_);
  replay(boot_nodes_);
  if (!top_up()) throw out_of_memory("the range for metadata is too small");
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void kernel_pool<Geometry, Reserve>::replay(const bootstrap_places& places) {
  for (unsigned i = 0; i < places.placed; ++i) {
    const void* place = table_.address(places.first) + i * places.units * Geometry.slot;
    if (pool_.allocate_here(pool_.class_of(places.units)) != place) std::abort();
  }
}

template <slab_geometry Geometry, std::uint64_t Reserve>
std::string kernel_pool<Geometry, Reserve>::check_invariants() const {
  const slab_run held{0, begun_};
  if (std::string fault = pool_.check_invariants(std::span(&held, 1)); !fault.empty())
    return "kernel pool: " + fault;
  if (!has_reserve() && begun_ + Geometry.slabs_in_page() <= table_.count())
    return "kernel pool: the reserve is short though there is memory";
  return {};
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void* kernel_nodes<Geometry, Reserve>::take_node() {
  return kernel->nested(kernel_pool<Geometry, Reserve>::node_units);
}
template <slab_geometry Geometry, std::uint64_t Reserve>
void kernel_nodes<Geometry, Reserve>::give_node(void* p) {
  kernel->nested_free(p);
}

}  // namespace quarry
