// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Measures the dynamic graph on a backend with an allocator that is selected by name.

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
  graph_measurement(const graph_point& point, const graph_request& request)
      : point_(&point),
        request_(&request),
        store_(point.vertices, bytes(request.heap)),
        first_(point.first) {
    for (const apps::graph_batch& b : point.batches) batches_.emplace_back(b);
  }

  graph_result run() {
    for (std::uint64_t pass = 0; pass <= request_->repeats; ++pass) {
      times_ = {};
      one_pass(request_->check && pass == 0);
      if (pass == 0) record_requests();
      if (!result_.skipped.empty()) return result_;
      if (pass == 0 || pass == request_->repeats) check_final_graph();
      store_.clear(timer(times_.clear));
      if (pass != 0) append_times();
    }
    if (result_.problem.empty()) result_.problem = store_.memory().check_invariants();
    return result_;
  }

 private:
  struct pass_times {
    double init = 0, insert = 0, erase = 0, clear = 0;
  };

  /// Returns a launcher that adds the kernel's time to `to`.
  auto timer(double& to) {
    return [this, &to](const grid& g, const auto& kernel) {
      to += clock_.time([&] { clock_.start(g, kernel); }).milliseconds;
    };
  }

  void one_pass(bool check) {
    apps::graph_sequential expected(check ? point_->vertices : 0);
    const auto after = [&](const char* what, auto change) {
      if (!check) return;
      change(expected);
      compare(expected, what);
    };
    store_.init(first_, timer(times_.init));
    after("init", [&](auto& e) { e.insert(point_->first); });
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      store_.insert(batches_[i], timer(times_.insert));
      after("insert", [&](auto& e) { e.insert(point_->batches[i]); });
    }
    for (std::size_t i = 0; point_->erases && i < batches_.size(); ++i) {
      store_.erase(batches_[i], timer(times_.erase));
      after("erase", [&](auto& e) { e.erase(point_->batches[i]); });
    }
  }

  void record_requests() {
    const auto requested = store_.requested();
    result_.allocations = requested.lists;
    result_.bytes = requested.bytes;
    if (Allocator::can.overwrites && requested.bytes > request_->heap)
      result_.skipped =
          "would overwrite blocks in use: a pass allocates " + to_text(bytes(requested.bytes));
  }

  void check_final_graph() {
    apps::graph_sequential expected(point_->vertices);
    expected.insert(point_->first);
    result_.edges = expected.edges();
    for (const apps::graph_batch& b : point_->batches) expected.insert(b);
    if (point_->erases)
      for (const apps::graph_batch& b : point_->batches) expected.erase(b);
    result_.final_edges = expected.edges();
    compare(expected, "a pass");
  }

  void compare(const apps::graph_sequential& expected, const char* what) {
    if (!result_.problem.empty()) return;
    const auto lists = store_.lists();
    for (std::uint32_t v = 0; v < point_->vertices; ++v)
      if (lists[v] != expected.lists()[v]) {
        result_.problem = "after " + std::string(what) + " vertex " + std::to_string(v) + " has " +
                          std::to_string(lists[v].size()) +
                          " edges; the sequential reference has " +
                          std::to_string(expected.lists()[v].size()) + ", or different ones";
        return;
      }
  }

  void append_times() {
    result_.init.push_back(times_.init);
    result_.insert.push_back(times_.insert);
    if (point_->erases) result_.erase.push_back(times_.erase);
    if (Allocator::can.frees_one) result_.clear.push_back(times_.clear);
  }

  const graph_point* point_;
  const graph_request* request_;
  apps::graph_store<Allocator, Backend> store_;
  apps::graph_device_batch<Backend> first_;
  std::vector<apps::graph_device_batch<Backend>> batches_;
  bench_clock<Backend> clock_;
  pass_times times_;
  graph_result result_;
};

template <class Backend>
graph_result measure_graph_named(const graph_point& point, const graph_request& request) {
  graph_result result;
  for_each_allocator([&](auto entry) {
    if (entry.name == request.allocator)
      result = graph_measurement<typename decltype(entry)::type, Backend>(point, request).run();
  });
  return result;
}

}  // namespace quarry::tool
