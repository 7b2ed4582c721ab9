// SPDX-License-Identifier: Apache-2.0
/// quarry cluster barnes-hut, delaunay, list-exchange: the applications of Lyberis et al. (2012).

#include "cluster/command.hpp"
#include "cluster/engine.hpp"

#include <apps/barnes_hut/barnes_hut.hpp>
#include <apps/delaunay/delaunay.hpp>
#include <apps/picture/picture.hpp>

#include <fmt/format.h>

#include <fstream>
#include <memory>

namespace quarry::tool {

namespace {

template <class Draw>
void write_picture(const std::string& file, Draw draw) {
  std::ofstream out(file);
  draw(out);
  if (!out) throw input_error("can not write " + file);
}

/// Prints at worker 0; every worker returns the exit code that it knows of.
int conclude(const cluster_options& o, const nlohmann::ordered_json& line,
             const std::function<void()>& say) {
  if (o.json) {
    fmt::print("{}\n", line.dump());
  } else {
    print_summary(line);
    say();
  }
  std::fflush(stdout);
  return line["correct"].get<bool>() ? exit_success : exit_check_failed;
}

// ---- Barnes-Hut ---------------------------------------------------------------------------------

struct bodies_options : cluster_options {
  std::uint64_t bodies = 10'000;
  std::uint64_t steps = 4;
  double theta = 0.5;
  bool check = true;
  std::string picture;
};

int run_bodies(const bodies_options& o, cluster::worker& w) {
  apps::barnes_hut_options ao;
  ao.bodies = o.bodies;
  ao.steps = static_cast<unsigned>(o.steps);
  ao.theta = o.theta;
  ao.seed = o.seed;
  ao.check = o.check;
  ao.keep = !o.picture.empty();
  const apps::barnes_hut_result r = apps::run(w, ao);
  worker_report mine;
  for (const apps::time_shares& t : {r.balance, r.build, r.fetch, r.forces}) mine.time += t;
  mine.calls = w.statistics();
  mine.work = r.interactions;
  mine.correct = r.correct;
  const std::vector<worker_report> all = collect(w, mine);
  if (w.number() != 0) return r.correct ? exit_success : exit_check_failed;
  if (!o.picture.empty())
    write_picture(o.picture, [&](std::ostream& out) { apps::draw_bodies(out, r.bodies); });
  nlohmann::ordered_json line = summary("barnes-hut", o, w, all);
  line["bodies"] = o.bodies;
  line["steps"] = o.steps;
  line["imbalance"] = r.imbalance;
  if (o.check) {
    line["force_error"] = r.force_error;
    line["energy_drift"] = r.energy_drift;
    line["momentum_drift"] = r.momentum_drift;
  }
  return conclude(o, line, [&] {
    fmt::print("{} forces between bodies and cells; most loaded worker {:.2f} of the mean\n",
               grouped(line["work"].get<std::uint64_t>()), r.imbalance);
    if (o.check)
      fmt::print("Checked: forces off by {:.2g}, energy drift {:.2g}, momentum drift {:.2g}: {}\n",
                 r.force_error, r.energy_drift, r.momentum_drift, r.correct ? "good" : "WRONG");
  });
}

// ---- Delaunay -----------------------------------------------------------------------------------

struct mesh_options : cluster_options {
  std::uint64_t points = 20'000;
  bool hand_over = false;
  bool check = true;
  std::string picture;
};

int run_mesh(const mesh_options& o, cluster::worker& w) {
  apps::delaunay_options ao;
  ao.points = o.points;
  ao.seed = o.seed;
  ao.hand_over = o.hand_over;
  ao.check = o.check;
  ao.keep = !o.picture.empty();
  const apps::delaunay_result r = apps::run(w, ao);
  worker_report mine;
  for (const apps::time_shares& t :
       {r.triangulate, r.retriangulate, r.delegate, r.rotate, r.finish})
    mine.time += t;
  mine.calls = w.statistics();
  mine.work = r.added;
  mine.correct = r.correct;
  const std::vector<worker_report> all = collect(w, mine);
  if (w.number() != 0) return r.correct ? exit_success : exit_check_failed;
  if (!o.picture.empty())
    write_picture(o.picture, [&](std::ostream& out) {
      apps::draw_mesh(out, r.mesh, std::int32_t{1} << ao.grid_bits);
    });
  nlohmann::ordered_json line = summary("delaunay", o, w, all);
  line["points"] = o.points;
  line["triangles"] = r.triangles;
  line["left_after_rotations"] = r.left_after_rotations;
  return conclude(o, line, [&] {
    fmt::print("{} triangles; {} points were left after the rotations and added at the end\n",
               grouped(r.triangles), grouped(r.left_after_rotations));
    if (o.check)
      fmt::print("Checked: all points, empty circles, Euler's formula: {}\n",
                 r.correct ? "good" : "WRONG: " + r.fault);
  });
}

// ---- lists --------------------------------------------------------------------------------------

struct lists_options : cluster_options {
  std::uint64_t nodes = 30'000;
  std::uint64_t rounds = 1;
};

/// What a node costs to allocate, nothing else: nanoseconds and messages.
struct allocation_cost {
  double nanoseconds = 0;
  double messages = 0;
};
allocation_cost cost_of_nodes(cluster::worker& w, std::uint64_t nodes) {
  w.barrier();
  const cluster::rid region =
      apps::value_or_throw(w.create_region(cluster::root), "create a region");
  const std::uint64_t before = w.statistics().messages;
  const double start = w.now();
  for (std::uint64_t i = 0; i < nodes; ++i)
    apps::value_or_throw(w.allocate(region, sizeof(apps::linked_node)), "allocate a node");
  const double count = static_cast<double>(nodes);
  const allocation_cost c{(w.now() - start) * 1e9 / count,
                          static_cast<double>(w.statistics().messages - before) / count};
  apps::throw_on_failure(w.destroy_region(region), "free the region");
  return c;
}

int run_lists(const lists_options& o, cluster::worker& w) {
  const apps::list_exchange_options ao{o.nodes, static_cast<unsigned>(o.rounds)};
  const auto report_of = [&](const apps::list_exchange_result& r,
                             const cluster::worker_statistics& calls) {
    worker_report mine;
    for (const apps::time_shares& t : {r.build, r.exchange, r.change}) mine.time += t;
    mine.calls = calls;
    mine.work = r.nodes_changed;
    mine.correct = r.correct;
    return mine;
  };
  const apps::list_exchange_result whole = apps::run(w, ao);
  const std::vector<worker_report> all = collect(w, report_of(whole, w.statistics()));
  const allocation_cost cost = cost_of_nodes(w, 10 * o.nodes);
  bool correct = whole.correct;
  double by_node_seconds[2] = {};
  bool has_by_node = false;
  for (const by_node how : {by_node::one_sided, by_node::request_reply}) {
    const auto r = exchange_by_node(o, w, how, ao);
    if (!r) continue;
    has_by_node = true;
    correct = correct && r->correct;
    for (const worker_report& x : collect(w, report_of(*r, {})))
      by_node_seconds[static_cast<int>(how)] =
          std::max(by_node_seconds[static_cast<int>(how)], x.time.total());
  }
  if (w.number() != 0) return correct ? exit_success : exit_check_failed;
  nlohmann::ordered_json line = summary("list-exchange", o, w, all);
  line["nodes"] = o.nodes;
  line["correct"] = line["correct"].get<bool>() && correct;
  line["allocation_ns"] = cost.nanoseconds;
  line["allocation_messages"] = cost.messages;
  const double seconds = line["seconds"].get<double>();
  if (has_by_node) {
    line["one_sided_seconds"] = by_node_seconds[0];
    line["request_reply_seconds"] = by_node_seconds[1];
    line["times_faster_than_one_sided"] = by_node_seconds[0] / seconds;
    line["times_faster_than_request_reply"] = by_node_seconds[1] / seconds;
  }
  return conclude(o, line, [&] {
    fmt::print("Lists of {} nodes of 256 B, built, exchanged whole, changed and given back: {}\n",
               grouped(o.nodes), line["correct"].get<bool>() ? "all as expected" : "WRONG");
    fmt::print("An allocation: {:.0f} ns, {:.4f} messages\n", cost.nanoseconds, cost.messages);
    if (has_by_node)
      fmt::print(
          "Node by node: {:.4g} s by one-sided get and put ({:.1f} times as long), {:.4g} s by "
          "request and reply ({:.1f} times)\n",
          by_node_seconds[0], by_node_seconds[0] / seconds, by_node_seconds[1],
          by_node_seconds[1] / seconds);
  });
}

/// Checked before a cluster is started: what the applications need of the number of workers.
unsigned workers_of(const cluster_options& o) {
  return o.simulate == 0
             ? 0
             : cluster::shape::for_nodes(static_cast<unsigned>(o.simulate), o.tree()).workers();
}

}  // namespace

void add_cluster_apps(CLI::App& cluster, action& chosen) {
  {
    auto o = std::make_shared<bodies_options>();
    CLI::App* command = cluster.add_subcommand(
        "barnes-hut",
        "Bodies under gravity: an oct-tree, a region a level; a power of two of workers");
    add_count(*command, "--bodies", o->bodies, "How many", 2);
    add_count(*command, "--steps", o->steps, "Of time", 1);
    command->add_option("--theta", o->theta, "Cells are opened nearer than their size / theta")
        ->check(CLI::Range(0.0, 1.0));
    command->add_flag("!--no-check", o->check, "Skip the comparison with a sum over all pairs");
    command->add_option("--picture", o->picture, "Draw the bodies into this SVG file");
    add_cluster_options(*command, *o);
    command->callback([o, &chosen] {
      chosen = [o] {
        if (const unsigned w = workers_of(*o); w != 0 && !std::has_single_bit(w))
          throw input_error(fmt::format("{} ranks make {} workers; Barnes-Hut needs a power of two",
                                        o->simulate, w));
        return on_cluster(*o, [&](cluster::worker& w) { return run_bodies(*o, w); });
      };
    });
  }
  {
    auto o = std::make_shared<mesh_options>();
    CLI::App* command = cluster.add_subcommand(
        "delaunay",
        "Triangulation of points over a hierarchy of regions; a power of four of workers");
    add_count(*command, "--points", o->points, "How many", 3);
    command->add_flag("--hand-over", o->hand_over, "Move quadrants instead of copying them");
    command->add_flag("!--no-check", o->check, "Skip the check of all triangles");
    command->add_option("--picture", o->picture, "Draw the triangles into this SVG file");
    add_cluster_options(*command, *o);
    command->callback([o, &chosen] {
      chosen = [o] {
        if (const unsigned w = workers_of(*o);
            w != 0 && (!std::has_single_bit(w) || std::countr_zero(w) % 2 != 0))
          throw input_error(fmt::format(
              "{} ranks make {} workers; the triangulation needs a power of four", o->simulate, w));
        return on_cluster(*o, [&](cluster::worker& w) { return run_mesh(*o, w); });
      };
    });
  }
  {
    auto o = std::make_shared<lists_options>();
    CLI::App* command = cluster.add_subcommand(
        "list-exchange", "Linked lists exchanged as whole regions, and node by node under mpirun");
    add_count(*command, "--nodes", o->nodes, "Of each worker's list", 1);
    add_count(*command, "--rounds", o->rounds, "Through all pairs", 1);
    o->apart = true;  // whole regions are copied, and nothing is handed over
    add_cluster_options(*command, *o);
    command->callback([o, &chosen] {
      chosen = [o] { return on_cluster(*o, [&](cluster::worker& w) { return run_lists(*o, w); }); };
    });
  }
}

}  // namespace quarry::tool
