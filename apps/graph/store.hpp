// SPDX-License-Identifier: Apache-2.0
#pragma once
/// graph_store: a dynamic graph in the heap of a backend.
///
///   graph_store<slab, cuda> graph(1 << 17, 1_GiB);
///   graph_device_batch<cuda> first(graph_batch(make_rmat(17, 2'000'000, 1)));
///   graph.init(first);   graph.insert(more);   graph.erase(more);   graph.clear();
///
/// Each operation is one kernel. `run(grid, kernel)` launches it and waits for it; the default is
/// launch(). An operation throws out_of_memory if an allocation in its kernel failed.

#include "apps/graph/kernels.hpp"

#include <quarry/heap.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quarry::apps {

/// A batch in the memory of a backend.
template <class Backend>
struct graph_device_batch {
  simt::array<graph_run, Backend> runs;
  simt::array<std::uint32_t, Backend> targets;

  explicit graph_device_batch(const graph_batch& b)
      : runs(b.runs.size()), targets(b.targets.size()) {
    runs.from_host(b.runs);
    targets.from_host(b.targets);
  }
};

template <class Allocator, class Backend>
class graph_store {
 public:
  using heap_type = heap<Allocator, Backend>;
  using ref_type = typename heap_type::ref_type;
  using device_batch = graph_device_batch<Backend>;
  static constexpr abilities can = Allocator::can;

  graph_store(std::uint32_t vertices, bytes pool)
      : pool_(pool),
        heap_(std::in_place, pool),
        vertices_(vertices),
        requested_(vertices),
        failures_(1) {}

  struct synchronous_launch {
    template <class Kernel>
    void operator()(const grid& g, const Kernel& k) const {
      launch<Backend>(g, k);
    }
  };

  /// Requires: the vertices of the batch have no edges.
  template <class Run = synchronous_launch>
  void init(const device_batch& batch, Run&& run = {}) {
    change<graph_change::init>(batch, run);
  }
  template <class Run = synchronous_launch>
  void insert(const device_batch& batch, Run&& run = {}) {
    change<graph_change::insert>(batch, run);
  }
  template <class Run = synchronous_launch>
  void erase(const device_batch& batch, Run&& run = {}) {
    change<graph_change::erase>(batch, run);
  }
  /// Removes all edges and frees all lists.
  template <class Run = synchronous_launch>
  void clear(Run&& run = {}) {
    run(lanes(vertices_.size()),
        graph_clear<ref_type>{heap_->ref(), vertices_.data(),
                              static_cast<std::uint32_t>(vertices_.size())});
    requested_.fill_zero();
    failures_.fill_zero();
    if constexpr (!can.frees_one && can.frees_all) {
      heap_->reset();
    } else if constexpr (!can.frees_one) {
      heap_.reset();
      heap_.emplace(pool_);
    }
  }

  /// Returns the adjacency lists by vertex, in ascending order.
  std::vector<std::vector<std::uint32_t>> lists() const;
  struct request_totals {
    std::uint64_t lists = 0;
    std::uint64_t bytes = 0;
  };
  /// Returns the memory requested from the heap since clear().
  request_totals requested() const {
    request_totals sum;
    for (const graph_requested& a : requested_.to_host()) {
      sum.lists += a.lists;
      sum.bytes += std::uint64_t{a.edges} * sizeof(std::uint32_t);
    }
    return sum;
  }
  std::vector<graph_vertex> vertices() const { return vertices_.to_host(); }
  const heap_type& memory() const { return *heap_; }

 private:
  static grid lanes(std::uint64_t n) {
    return {.blocks = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (n + 255) / 256)),
            .threads = 256};
  }

  template <graph_change Change, class Run>
  void change(const device_batch& batch, Run& run) {
    const graph_kernel_arguments args{
        vertices_.data(),     requested_.data(),
        batch.runs.data(),    static_cast<std::uint32_t>(batch.runs.size()),
        batch.targets.data(), failures_.data()};
    run(lanes(batch.runs.size() * simt::warp_size),
        graph_kernel<ref_type, Change>{heap_->ref(), args});
    if (const std::uint32_t n = failures_.to_host()[0]; n != 0)
      throw out_of_memory("the heap of " + to_text(pool_) + " had no room for the lists of " +
                          std::to_string(n) + " vertices; increase the heap");
  }

  bytes pool_;
  std::optional<heap_type> heap_;
  simt::array<graph_vertex, Backend> vertices_;
  simt::array<graph_requested, Backend> requested_;
  simt::array<std::uint32_t, Backend> failures_;
};

template <class Allocator, class Backend>
std::vector<std::vector<std::uint32_t>> graph_store<Allocator, Backend>::lists() const {
  const std::vector<graph_vertex> host = vertices_.to_host();
  std::vector<std::uint64_t> offsets(host.size());
  std::uint64_t total = 0;
  for (std::size_t v = 0; v < host.size(); ++v) offsets[v] = total, total += host[v].degree;
  simt::array<std::uint64_t, Backend> places(offsets.size());
  places.from_host(offsets);
  simt::array<std::uint32_t, Backend> gathered(total);
  launch<Backend>(lanes(host.size() * simt::warp_size),
                  graph_gather{vertices_.data(), static_cast<std::uint32_t>(host.size()),
                               places.data(), gathered.data()});
  const std::vector<std::uint32_t> all = gathered.to_host();
  std::vector<std::vector<std::uint32_t>> lists(host.size());
  for (std::size_t v = 0; v < host.size(); ++v) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(offsets[v]);
    lists[v].assign(begin, begin + host[v].degree);
    std::sort(lists[v].begin(), lists[v].end());
  }
  return lists;
}

}  // namespace quarry::apps
