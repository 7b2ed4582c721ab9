// SPDX-License-Identifier: Apache-2.0
/// `quarry cluster scaling`: the cost of a call against the number of workers, with one scheduler
/// and with a tree of schedulers, in the simulated network (compare Lyberis et al. 2012, Figures
/// 4e, 4f).

#include "chart/svg_chart.hpp"
#include "cluster/command.hpp"
#include "cluster/engine.hpp"
#include "cluster/records.hpp"
#include "common/output.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"

#include <quarry/cluster/simulation.hpp>

#include <apps/common/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace quarry::tool {

namespace {

struct scaling_options {
  std::uint64_t most = 8192;
  std::uint64_t calls = 64;
  std::uint64_t think = 20;  // microseconds between calls
  std::uint64_t workers_each = 8;
  std::uint64_t schedulers_each = 8;
  std::uint64_t seed = 1;
  std::uint64_t size = 0;  // bytes of an object; 0: from 64 to 320
  cluster::scheduler_tuning tuning;
  bool leases = false;
  bool json = false;
  std::string plot, out;
};

/// The measurement of one tree with one number of workers.
struct measurement {
  std::string tree;
  unsigned workers = 0;
  unsigned schedulers = 0;
  double call = 0;      // mean time that a worker waits for a call, seconds
  double longest = 0;   // the longest of these times, seconds
  double queue = 0;     // mean time that a message waits at a scheduler, seconds
  double messages = 0;  // messages per call, over all links
  double busiest = 0;   // fraction of the schedulers' messages at the busiest scheduler
};

/// Each worker allocates and frees objects in its own region and computes for `think` between two
/// calls. The measurement starts after all workers have created their regions below the root.
measurement measure(const scaling_options& o, unsigned workers, bool one) {
  cluster::simulation_options so;
  so.workers = workers;
  so.tree = one ? cluster::ratios{2, workers}
                : cluster::ratios{static_cast<unsigned>(o.schedulers_each),
                                  static_cast<unsigned>(o.workers_each)};
  so.seed = o.seed;
  so.worker.leases = o.leases;
  so.tuning = o.tuning;
  so.stack = std::size_t{64} << 10;
  so.call = 0.1e-6;
  cluster::simulation s(so);
  const double think = static_cast<double>(o.think) * 1e-6;
  cluster::simulation_result start, end;
  double waited = 0, longest = 0;
  s.run([&](cluster::worker& w) {
    const cluster::rid region =
        apps::value_or_throw(w.create_region(cluster::root), "create a region");
    std::vector<void*> live;
    w.barrier();
    if (w.number() == 0) start = s.so_far();
    const double waited_before = w.statistics().waited_for_schedulers;
    w.advance_time(think * w.number() / w.count());  // desynchronises the workers
    for (std::uint64_t i = 0; i < o.calls; ++i) {
      w.advance_time(think);
      const double before = w.statistics().waited_for_schedulers;
      if (i % 4 == 3) {
        apps::throw_on_failure(w.deallocate(live.back()), "free an object");
        live.pop_back();
      } else {
        const std::uint64_t size = o.size != 0 ? o.size : 64 + 64 * (i % 5);
        live.push_back(apps::value_or_throw(w.allocate(region, size), "allocate an object"));
      }
      longest = std::max(longest, w.statistics().waited_for_schedulers - before);
    }
    waited += w.statistics().waited_for_schedulers - waited_before;
    w.barrier();
    if (w.number() == 0) end = s.so_far();
    apps::throw_on_failure(w.destroy_region(region), "free the region");
  });
  measurement c;
  c.tree = one ? "one scheduler" : "tree";
  c.workers = workers;
  c.schedulers = s.tree().schedulers();
  const double calls = static_cast<double>(o.calls) * workers;
  const auto received = static_cast<double>(end.scheduler_messages - start.scheduler_messages);
  c.call = waited / calls;
  c.longest = longest;
  c.queue = (end.queued - start.queued) / received;
  c.messages = static_cast<double>(end.messages - start.messages) / calls;
  c.busiest = static_cast<double>(s.so_far().busiest_scheduler) /
              static_cast<double>(s.so_far().scheduler_messages);
  return c;
}

chart chart_of(const std::vector<measurement>& all) {
  chart c;
  c.title = "Waiting time of a worker per call, queueing time of a message";
  c.subtitle = "simulated network; zeros are not shown";
  c.x = {"workers", "", axis_scale::logarithmic, {}};
  c.y = {"time", "µs", axis_scale::logarithmic, {}};
  unsigned number = 0;
  for (const char* tree : {"one scheduler", "tree"}) {
    chart_curve waits{fmt::format("call, {}", tree), tree, style_of(number, 0), {}};
    chart_curve queues{fmt::format("queue, {}", tree), tree, style_of(number++, 1), {}};
    for (const measurement& m : all)
      if (m.tree == tree) {
        waits.points.push_back({static_cast<double>(m.workers), m.call * 1e6});
        queues.points.push_back({static_cast<double>(m.workers), m.queue * 1e6});
      }
    c.curves.push_back(waits);
    c.curves.push_back(queues);
  }
  return c;
}

std::vector<cluster_json> records_of(const scaling_options& o,
                                     const std::vector<measurement>& all) {
  std::vector<cluster_json> records = {scaling_experiment()};
  const std::string suffix = o.leases ? ", leases" : "";
  const std::string command = fmt::format(
      "quarry cluster scaling --most {} --calls {} --think {} --workers-each {} "
      "--schedulers-each {} --seed {} --size {} --low-pages {}{}",
      o.most, o.calls, o.think, o.workers_each, o.schedulers_each, o.seed, o.size,
      o.tuning.low_pages, o.leases ? " --leases" : "");
  const cluster_json where = network_fields(cluster_network::simulated);
  for (const measurement& m : all) {
    cluster_json point = {{"kind", "point"},           {"experiment", "cluster-scaling"},
                          {"series", m.tree + suffix}, {"x", m.workers},
                          {"command", command},        {"outcome", "ok"}};
    point.update(where);
    point.update({{"tree", m.tree},
                  {"workers", m.workers},
                  {"schedulers", m.schedulers},
                  {"leases", o.leases},
                  {"call_us", m.call * 1e6},
                  {"longest_us", m.longest * 1e6},
                  {"queue_us", m.queue * 1e6},
                  {"messages_per_call", m.messages},
                  {"busiest_share", m.busiest}});
    records.push_back(std::move(point));
  }
  return records;
}

int run_scaling(const scaling_options& o) {
  require_one_process();
  std::vector<measurement> all;
  {
    progress bar;
    for (unsigned workers = 1; workers <= o.most; workers *= 2)
      for (const bool one : {true, false}) {
        bar.show(static_cast<double>(workers) / static_cast<double>(2 * o.most),
                 fmt::format("{} workers", workers));
        all.push_back(measure(o, workers, one));
      }
  }
  if (!o.plot.empty()) write_file(o.plot, chart_svg(chart_of(all)));
  write_records(records_of(o, all), o.json, o.out);
  if (o.json) return exit_success;
  table t({{"workers", right},
           {"tree", left},
           {"schedulers", right},
           {"us per call", right},
           {"longest", right},
           {"us queued", right},
           {"messages per call", right},
           {"busiest", right}});
  for (const measurement& m : all)
    t.add({grouped(m.workers), m.tree, grouped(m.schedulers), fmt::format("{:.1f}", m.call * 1e6),
           fmt::format("{:.1f}", m.longest * 1e6), fmt::format("{:.2f}", m.queue * 1e6),
           fmt::format("{:.2f}", m.messages), fmt::format("{:.0f} %", 100 * m.busiest)});
  fmt::print("{}", t.text());
  return exit_success;
}

}  // namespace

void add_cluster_scaling(const command_line& cluster, action& chosen) {
  auto o = std::make_shared<scaling_options>();
  const command_line command = cluster.add_subcommand(
      "scaling", "Simulate 1 to N workers: cost of a call with one scheduler and with a tree");
  add_count(command, "--most", o->most, "Maximum number of workers; they double from 1", 1, 65'536);
  add_count(command, "--calls", o->calls, "Calls per worker", 4, 1'000'000'000);
  add_count(command, "--think", o->think, "Microseconds that a worker computes between two calls",
            0, 1'000'000'000);
  add_count(command, "--workers-each", o->workers_each, "Workers below a scheduler of the tree", 1,
            100'000);
  add_count(command, "--schedulers-each", o->schedulers_each,
            "Schedulers below a scheduler of the tree", 2, 100'000);
  add_count(command, "--seed", o->seed, "Seed of the simulated delays");
  add_count(command, "--size", o->size, "Bytes of an object (0: from 64 to 320)", 0, 1u << 30);
  add_low_pages(command, o->tuning);
  command.add_flag("--leases", o->leases, "Allocate through leases");
  command.add_option("--plot", o->plot, "Draw the result into this SVG file");
  command.add_flag("--json", o->json, "Print records (one JSON object per line) for quarry report");
  command.add_option("--out", o->out, "Append the records to this file", "FILE");
  command.callback([o, &chosen] { chosen = [o] { return run_scaling(*o); }; });
}

}  // namespace quarry::tool
