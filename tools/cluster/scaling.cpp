// SPDX-License-Identifier: Apache-2.0
/// quarry cluster scaling: what a call costs as workers grow, with one scheduler and with a tree, in
/// the simulated network (the question of Figures 4e and 4f in Lyberis et al. 2012).

#include "chart/svg_chart.hpp"
#include "cluster/command.hpp"
#include "common/progress.hpp"

#include <quarry/cluster/simulation.hpp>

#include <apps/common/status.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <memory>

namespace quarry::tool {

namespace {

struct options {
  std::uint64_t most = 8192;
  std::uint64_t calls = 64;
  std::uint64_t think = 20;  // microseconds between calls
  std::uint64_t workers_each = 8;
  std::uint64_t schedulers_each = 8;
  std::uint64_t seed = 1;
  bool leases = false;
  bool json = false;
  std::string plot;
};

struct cell {
  std::string tree;
  unsigned workers = 0;
  unsigned schedulers = 0;
  double call = 0;      // seconds a worker waits, each call
  double queue = 0;     // seconds a message waits for a scheduler, each
  double messages = 0;  // of all links, each call
  double busiest = 0;   // share of all messages at the scheduler that has most
};

/// Each worker allocates and frees objects in its own region, thinking between the calls. What it costs
/// to make the regions, all at once and all under the root, is not counted.
cell measure(const options& o, unsigned workers, bool one) {
  cluster::simulation_options so;
  so.workers = workers;
  so.tree = one ? cluster::ratios{2, workers}
                : cluster::ratios{static_cast<unsigned>(o.schedulers_each),
                                  static_cast<unsigned>(o.workers_each)};
  so.seed = o.seed;
  so.worker.leases = o.leases;
  so.stack = std::size_t{64} << 10;
  so.call = 0.1e-6;
  cluster::simulation s(so);
  const double think = static_cast<double>(o.think) * 1e-6;
  cluster::simulation_result start, end;
  double waited = 0;
  s.run([&](cluster::worker& w) {
    const cluster::rid region =
        apps::value_or_throw(w.create_region(cluster::root), "create a region");
    std::vector<void*> live;
    w.barrier();
    if (w.number() == 0) start = s.so_far();
    const double waited_before = w.statistics().waited_for_schedulers;
    w.advance_time(think * w.number() / w.count());  // or all would ask at the same time
    for (std::uint64_t i = 0; i < o.calls; ++i) {
      w.advance_time(think);
      if (i % 4 == 3) {
        apps::throw_on_failure(w.deallocate(live.back()), "free an object");
        live.pop_back();
      } else {
        live.push_back(
            apps::value_or_throw(w.allocate(region, 64 + 64 * (i % 5)), "allocate an object"));
      }
    }
    waited += w.statistics().waited_for_schedulers - waited_before;
    w.barrier();
    if (w.number() == 0) end = s.so_far();
    apps::throw_on_failure(w.destroy_region(region), "free the region");
  });
  cell c;
  c.tree = one ? "one scheduler" : "tree";
  c.workers = workers;
  c.schedulers = s.tree().schedulers();
  const double calls = static_cast<double>(o.calls) * workers;
  const double received = static_cast<double>(end.scheduler_messages - start.scheduler_messages);
  c.call = waited / calls;
  c.queue = (end.queued - start.queued) / received;
  c.messages = static_cast<double>(end.messages - start.messages) / calls;
  c.busiest = static_cast<double>(s.so_far().busiest_scheduler) /
              static_cast<double>(s.so_far().scheduler_messages);
  return c;
}

chart waits_of(const std::vector<cell>& cells) {
  chart c;
  c.title = "What a worker waits for a call, and a message in a queue";
  c.subtitle = "simulated network; zero is not shown";
  c.x = {"workers", "", axis_scale::logarithmic, {}};
  c.y = {"time", "µs", axis_scale::logarithmic, {}};
  unsigned number = 0;
  for (const char* tree : {"one scheduler", "tree"}) {
    chart_curve waits{fmt::format("a call, {}", tree), tree, look_of(number, 0), {}};
    chart_curve queues{fmt::format("queue, {}", tree), tree, look_of(number++, 1), {}};
    for (const cell& measured : cells)
      if (measured.tree == tree) {
        waits.dots.push_back({static_cast<double>(measured.workers), measured.call * 1e6});
        queues.dots.push_back({static_cast<double>(measured.workers), measured.queue * 1e6});
      }
    c.curves.push_back(waits);
    c.curves.push_back(queues);
  }
  return c;
}

int run_all(const options& o) {
  std::vector<cell> cells;
  {
    progress bar;
    for (unsigned workers = 1; workers <= o.most; workers *= 2)
      for (const bool one : {true, false}) {
        bar.show(static_cast<double>(workers) / static_cast<double>(2 * o.most),
                 fmt::format("{} workers", workers));
        cells.push_back(measure(o, workers, one));
      }
  }
  if (!o.plot.empty()) {
    std::ofstream out(o.plot);
    out << chart_svg(waits_of(cells));
    if (!out) throw input_error("can not write " + o.plot);
  }
  if (o.json) {
    for (const cell& c : cells)
      fmt::print("{}\n", nlohmann::ordered_json{{"experiment", "cluster-scaling"},
                                                {"tree", c.tree},
                                                {"workers", c.workers},
                                                {"schedulers", c.schedulers},
                                                {"leases", o.leases},
                                                {"call_us", c.call * 1e6},
                                                {"queue_us", c.queue * 1e6},
                                                {"messages_per_call", c.messages},
                                                {"busiest_share", c.busiest}}
                             .dump());
    return exit_success;
  }
  table t({{"workers", right},
           {"tree", left},
           {"schedulers", right},
           {"us a call", right},
           {"us in queue", right},
           {"messages a call", right},
           {"at the busiest", right}});
  for (const cell& c : cells)
    t.add({grouped(c.workers), c.tree, grouped(c.schedulers), fmt::format("{:.1f}", c.call * 1e6),
           fmt::format("{:.2f}", c.queue * 1e6), fmt::format("{:.2f}", c.messages),
           fmt::format("{:.0f} %", 100 * c.busiest)});
  fmt::print("{}", t.text());
  return exit_success;
}

}  // namespace

void add_cluster_scaling(CLI::App& cluster, action& chosen) {
  auto o = std::make_shared<options>();
  CLI::App* command = cluster.add_subcommand(
      "scaling", "Cost of a call with 1 to N workers, one scheduler against a tree, simulated");
  add_count(*command, "--most", o->most, "Workers, doubled from 1 up to this", 1, 65'536);
  add_count(*command, "--calls", o->calls, "Of each worker", 4);
  add_count(*command, "--think", o->think, "Microseconds between two calls of a worker", 0);
  add_count(*command, "--workers-each", o->workers_each, "Below a scheduler of the tree", 1);
  add_count(*command, "--schedulers-each", o->schedulers_each, "Below one of its schedulers", 2);
  add_count(*command, "--seed", o->seed, "Of the network's delays");
  command->add_flag("--leases", o->leases, "Allocate through leases (the paper has none)");
  command->add_option("--plot", o->plot, "Write the curves to this SVG file");
  command->add_flag("--json", o->json, "Print lines of JSON");
  command->callback([o, &chosen] { chosen = [o] { return run_all(*o); }; });
}

}  // namespace quarry::tool
