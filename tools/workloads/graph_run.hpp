// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A graph that changes inside kernels, timed on a machine with the allocator of a name.

#include "bench/kernels/clock.hpp"
#include "workloads/graph.hpp"

#include "apps/graph/store.hpp"

#include <quarry/heap/named.hpp>

#include <string>
#include <vector>

namespace quarry::tool {

template <class Allocator, class Backend>
class graph_measurement {
 public:
  graph_measurement(const graph_cell& cell, const graph_request& request)
      : cell_(&cell),
        request_(&request),
        store_(cell.vertices, bytes(request.heap)),
        first_(cell.first) {
    for (const apps::graph_batch& b : cell.batches) batches_.emplace_back(b);
  }

  graph_measured run() {
    for (std::uint64_t pass = 0; pass <= request_->repeats; ++pass) {
      times_ = {};
      one_pass(request_->check && pass == 0);
      if (pass == 0) note_demand();
      if (!result_.skipped.empty()) return result_;
      if (pass == 0 || pass == request_->repeats) look_at_the_end();
      store_.clear(timer(times_.clear));
      if (pass != 0) keep();
    }
    if (result_.problem.empty()) result_.problem = store_.memory().check_invariants();
    return result_;
  }

 private:
  struct pass_times {
    double init = 0, insert = 0, erase = 0, clear = 0;
  };

  /// Adds what a kernel takes.
  auto timer(double& to) {
    return [this, &to](const grid& g, const auto& kernel) {
      to += clock_.time([&] { clock_.start(g, kernel); }).milliseconds;
    };
  }

  void one_pass(bool check) {
    apps::graph_sequential expected(check ? cell_->vertices : 0);
    const auto after = [&](const char* what, auto change) {
      if (!check) return;
      change(expected);
      compare(expected, what);
    };
    store_.init(first_, timer(times_.init));
    after("init", [&](auto& e) { e.insert(cell_->first); });
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      store_.insert(batches_[i], timer(times_.insert));
      after("insert", [&](auto& e) { e.insert(cell_->batches[i]); });
    }
    for (std::size_t i = 0; cell_->erases && i < batches_.size(); ++i) {
      store_.erase(batches_[i], timer(times_.erase));
      after("erase", [&](auto& e) { e.erase(cell_->batches[i]); });
    }
  }

  void note_demand() {
    const auto asked = store_.asked();
    result_.allocations = asked.lists;
    result_.bytes = asked.bytes;
    if (Allocator::can.overwrites && asked.bytes > request_->heap)
      result_.skipped = "would overwrite: a pass asks for " + to_text(bytes(asked.bytes));
  }

  void look_at_the_end() {
    apps::graph_sequential expected(cell_->vertices);
    expected.insert(cell_->first);
    result_.edges = expected.edges();
    for (const apps::graph_batch& b : cell_->batches) expected.insert(b);
    if (cell_->erases)
      for (const apps::graph_batch& b : cell_->batches) expected.erase(b);
    result_.final_edges = expected.edges();
    compare(expected, "a pass");
  }

  void compare(const apps::graph_sequential& expected, const char* what) {
    if (!result_.problem.empty()) return;
    const auto lists = store_.lists();
    for (std::uint32_t v = 0; v < cell_->vertices; ++v)
      if (lists[v] != expected.lists()[v]) {
        result_.problem = "after " + std::string(what) + " vertex " + std::to_string(v) + " has " +
                          std::to_string(lists[v].size()) + " edges, and not the " +
                          std::to_string(expected.lists()[v].size()) + " that one thread finds";
        return;
      }
  }

  void keep() {
    result_.init.push_back(times_.init);
    result_.insert.push_back(times_.insert);
    if (cell_->erases) result_.erase.push_back(times_.erase);
    if (Allocator::can.frees_one) result_.clear.push_back(times_.clear);
  }

  const graph_cell* cell_;
  const graph_request* request_;
  apps::graph_store<Allocator, Backend> store_;
  apps::graph_changes<Backend> first_;
  std::vector<apps::graph_changes<Backend>> batches_;
  bench_clock<Backend> clock_;
  pass_times times_;
  graph_measured result_;
};

template <class Backend>
graph_measured measure_graph_named(const graph_cell& cell, const graph_request& request) {
  graph_measured result;
  for_each_allocator([&](auto entry) {
    if (entry.name == request.allocator)
      result = graph_measurement<typename decltype(entry)::type, Backend>(cell, request).run();
  });
  return result;
}

}  // namespace quarry::tool
