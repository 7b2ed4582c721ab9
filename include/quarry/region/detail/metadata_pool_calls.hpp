// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Definitions of the members of metadata_pool. Part of definitions.hpp.

#include <quarry/region/detail/metadata_pool.hpp>
#include <quarry/region/detail/slab_pool_check.hpp>
#include <quarry/region/detail/slab_pool_slow.hpp>

namespace quarry {

template <slab_geometry Geometry, std::uint64_t Reserve>
void* metadata_pool<Geometry, Reserve>::allocate(std::size_t n) {
  if (!has_reserve() && !top_up()) return nullptr;
  void* p = pool_.allocate(n);
  top_up();  // if this fails, the next request tries again
  return p;
}

template <slab_geometry Geometry, std::uint64_t Reserve>
region_status metadata_pool<Geometry, Reserve>::deallocate(void* p) {
  const std::size_t size = pool_.usable_size(p);
  if (const region_status s = pool_.deallocate(p); s != region_status::ok) return s;
  if (size <= Geometry.most_units() * Geometry.slot) trim(pool_.class_of(units_of(size)));
  trim(pool_.class_of(node_units));
  top_up();
  return region_status::ok;
}

/// Returns empty groups to the free runs, but keeps `kept_slabs` slabs and the reserve.
template <slab_geometry Geometry, std::uint64_t Reserve>
void metadata_pool<Geometry, Reserve>::trim(size_class& c) {
  const std::uint64_t in_group = c.group * Geometry.units_in_slab() / c.units;
  while (c.empty_slabs > inner::kept_slabs) {
    if (c.pinned && pool_.spare(c.units) < 2 * node_reserve + in_group) return;
    if (!pool_.give_back(c)) return;
  }
}

template <slab_geometry Geometry, std::uint64_t Reserve>
bool metadata_pool<Geometry, Reserve>::top_up() {
  while (pool_.spare(node_units) < node_reserve)
    if (!pool_.refill(pool_.class_of(node_units))) return false;
  while (pool_.spare(block_units) < block_reserve)
    if (!pool_.refill(pool_.class_of(block_units))) return false;
  return true;
}

template <slab_geometry Geometry, std::uint64_t Reserve>
slab_run metadata_pool<Geometry, Reserve>::more_slabs(slab_number least, slab_number wanted) {
  const slab_number left = table_.count() - begun_;
  if (left < least) return {};
  const slab_number pages = ceil_div(wanted, Geometry.slabs_in_page()) * Geometry.slabs_in_page();
  const slab_run run{begun_, std::min(left, pages)};
  table_.set_owner(run, stamp);
  begun_ += run.count;
  return run;
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void* metadata_pool<Geometry, Reserve>::nested(unsigned units) {
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
void metadata_pool<Geometry, Reserve>::nested_free(void* p) {
  if (pool_.deallocate(p) != region_status::ok) std::abort();  // the metadata is corrupt
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void metadata_pool<Geometry, Reserve>::bootstrap() {
  pool_.keeps_empty_groups_ = pool_.has_no_magazines_ = true;
  // The bootstrap places at most two class blocks and the nodes of one path of the index.
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
  if (begun_ <= linear) throw out_of_memory("the range for metadata must have at least two pages");
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
void metadata_pool<Geometry, Reserve>::replay(const bootstrap_places& places) {
  for (unsigned i = 0; i < places.placed; ++i) {
    const void* place = table_.address(places.first) + i * places.units * Geometry.slot;
    if (pool_.allocate_here(pool_.class_of(places.units)) != place) std::abort();
  }
}

template <slab_geometry Geometry, std::uint64_t Reserve>
std::string metadata_pool<Geometry, Reserve>::check_invariants() const {
  const slab_run held{0, begun_};
  if (std::string fault = pool_.check_invariants(std::span(&held, 1)); !fault.empty())
    return "metadata pool: " + fault;
  if (!has_reserve() && begun_ + Geometry.slabs_in_page() <= table_.count())
    return "metadata pool: the reserve is incomplete although memory is left";
  return {};
}

template <slab_geometry Geometry, std::uint64_t Reserve>
void* metadata_nodes<Geometry, Reserve>::take_node() {
  return pool->nested(metadata_pool<Geometry, Reserve>::node_units);
}
template <slab_geometry Geometry, std::uint64_t Reserve>
void metadata_nodes<Geometry, Reserve>::give_node(void* p) {
  pool->nested_free(p);
}

}  // namespace quarry
