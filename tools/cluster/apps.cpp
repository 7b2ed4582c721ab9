// SPDX-License-Identifier: Apache-2.0
/// `quarry cluster barnes-hut`, `delaunay` and `list-exchange`: the applications of Lyberis et al.
/// (2012).

#include "cluster/command.hpp"
#include "cluster/engine.hpp"
#include "common/output.hpp"
#include "common/text.hpp"

#include <apps/barnes_hut/barnes_hut.hpp>
#include <apps/delaunay/delaunay.hpp>
#include <apps/picture/picture.hpp>

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <sstream>

namespace quarry::tool {

namespace {

/// The largest number of bodies, points or nodes: a node of a list has 256 bytes.
constexpr std::uint64_t max_input = 100'000'000;

template <class Draw>
void write_picture(const std::string& file, Draw draw) {
  std::ostringstream picture;
  draw(picture);
  write_file(file, picture.str());
}

unsigned ranks_of(cluster::worker& w) {
  const cluster::shape& tree = w.tree();
  return tree.workers() + tree.schedulers();
}

/// Called by worker 0 alone: writes the records of the run, or prints it as text. `app_options` is
/// the command line of the application; `print_details` prints what print_summary() does not know.
int finish(const cluster_options& o, cluster::worker& w, const cluster_json& run,
           const std::string& app_options, const std::function<void()>& print_details) {
  write_records(run_records(run, o.network(), o.command(app_options, ranks_of(w))), o.json, o.out);
  if (!o.json) {
    print_summary(run);
    print_details();
  }
  std::fflush(stdout);
  return run["correct"].get<bool>() ? exit_success : exit_check_failed;
}

// ---- Barnes-Hut ---------------------------------------------------------------------------------

struct bodies_options : cluster_options {
  std::uint64_t bodies = 10'000;
  std::uint64_t steps = 4;
  double theta = 0.5;
  bool check = true;
  std::string picture;
};

int run_bodies(const bodies_options& o, cluster::worker& w, run_progress& bar) {
  apps::barnes_hut_options ao;
  ao.bodies = o.bodies;
  ao.steps = static_cast<unsigned>(o.steps);
  ao.theta = o.theta;
  ao.seed = o.seed;
  ao.check = o.check;
  ao.keep = !o.picture.empty();
  ao.on_step = bar.listener(w);
  const apps::barnes_hut_result r = apps::run(w, ao);
  worker_report mine;
  for (const apps::time_shares& t : {r.balance, r.build, r.fetch, r.forces}) mine.time += t;
  mine.calls = w.statistics();
  mine.work = r.interactions;
  mine.correct = r.correct;
  const std::vector<worker_report> all = collect(w, mine);
  if (w.number() != 0) return r.correct ? exit_success : exit_check_failed;
  bar.end();
  if (!o.picture.empty())
    write_picture(o.picture, [&](std::ostream& out) { apps::draw_bodies(out, r.bodies); });
  cluster_json run = summarise_run("barnes-hut", o, w, all);
  run["bodies"] = o.bodies;
  run["steps"] = o.steps;
  if (o.check) {
    run["imbalance"] = r.imbalance;
    run["force_error"] = r.force_error;
    run["energy_drift"] = r.energy_drift;
    run["momentum_drift"] = r.momentum_drift;
  }
  const std::string command =
      fmt::format("barnes-hut --bodies {} --steps {} --theta {}", o.bodies, o.steps, o.theta);
  return finish(o, w, run, command, [&] {
    fmt::print("{} forces between bodies and cells\n", grouped(run["work"].get<std::uint64_t>()));
    if (o.check)
      fmt::print(
          "Load of the busiest worker / mean {:.2f}\n"
          "Checked: force error {:.2g}, energy drift {:.2g}, momentum drift {:.2g}: {}\n",
          r.imbalance, r.force_error, r.energy_drift, r.momentum_drift,
          r.correct ? "correct" : "WRONG");
  });
}

// ---- Delaunay -----------------------------------------------------------------------------------

struct mesh_options : cluster_options {
  std::uint64_t points = 20'000;
  bool hand_over = false;
  bool check = true;
  std::string picture;
};

int run_mesh(const mesh_options& o, cluster::worker& w, run_progress& bar) {
  apps::delaunay_options ao;
  ao.points = o.points;
  ao.seed = o.seed;
  ao.hand_over = o.hand_over;
  ao.check = o.check;
  ao.keep = !o.picture.empty();
  ao.on_stage = bar.listener(w);
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
  bar.end();
  if (!o.picture.empty())
    write_picture(o.picture, [&](std::ostream& out) {
      apps::draw_mesh(out, r.mesh, std::int32_t{1} << ao.grid_bits);
    });
  cluster_json run = summarise_run("delaunay", o, w, all);
  run["points"] = o.points;
  run["triangles"] = r.triangles;
  run["left_after_rotations"] = r.left_after_rotations;
  const std::string command =
      fmt::format("delaunay --points {}{}", o.points, o.hand_over ? " --hand-over" : "");
  return finish(o, w, run, command, [&] {
    fmt::print("{} triangles; {} points remained after the rotations and were added at the end\n",
               grouped(r.triangles), grouped(r.left_after_rotations));
    if (o.check)
      fmt::print("Checked: every point, empty circumcircles, Euler's formula: {}\n",
                 r.correct ? "correct" : "WRONG: " + r.fault);
  });
}

// ---- lists --------------------------------------------------------------------------------------

struct lists_options : cluster_options {
  std::uint64_t nodes = 30'000;
  std::uint64_t rounds = 1;
};

/// The cost of one allocation of a node.
struct allocation_cost {
  double nanoseconds = 0;
  double messages = 0;
};
/// Collective. Allocates `nodes` nodes in a new region and returns the mean cost of a call.
allocation_cost measure_allocation(cluster::worker& w, std::uint64_t nodes) {
  w.barrier();
  const cluster::rid region =
      apps::value_or_throw(w.create_region(cluster::root), "create a region");
  const std::uint64_t before = w.statistics().messages;
  const double start = w.now();
  for (std::uint64_t i = 0; i < nodes; ++i)
    apps::value_or_throw(w.allocate(region, sizeof(apps::linked_node)), "allocate a node");
  const auto count = static_cast<double>(nodes);
  const allocation_cost c{(w.now() - start) * 1e9 / count,
                          static_cast<double>(w.statistics().messages - before) / count};
  apps::throw_on_failure(w.destroy_region(region), "free the region");
  return c;
}

int run_lists(const lists_options& o, cluster::worker& w, run_progress& bar) {
  const apps::list_exchange_options ao{o.nodes, static_cast<unsigned>(o.rounds), bar.listener(w)};
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
  const allocation_cost cost = measure_allocation(w, 10 * o.nodes);
  bool correct = whole.correct;
  double by_node_seconds[2] = {};
  bool has_by_node = false;
  for (const node_access access : {node_access::one_sided, node_access::request_reply}) {
    const auto r = exchange_by_node(o, w, access, ao);
    if (!r) continue;
    has_by_node = true;
    correct = correct && r->correct;
    for (const worker_report& x : collect(w, report_of(*r, {})))
      by_node_seconds[static_cast<int>(access)] =
          std::max(by_node_seconds[static_cast<int>(access)], x.time.total());
  }
  if (w.number() != 0) return correct ? exit_success : exit_check_failed;
  bar.end();
  cluster_json run = summarise_run("list-exchange", o, w, all);
  run["nodes"] = o.nodes;
  run["correct"] = run["correct"].get<bool>() && correct;
  run["allocation_ns"] = cost.nanoseconds;
  run["allocation_messages"] = cost.messages;
  const double seconds = run["seconds"].get<double>();
  if (has_by_node) {
    run["one_sided_seconds"] = by_node_seconds[0];
    run["request_reply_seconds"] = by_node_seconds[1];
    run["times_faster_than_one_sided"] = by_node_seconds[0] / seconds;
    run["times_faster_than_request_reply"] = by_node_seconds[1] / seconds;
  }
  const std::string command =
      fmt::format("list-exchange --nodes {} --rounds {}", o.nodes, o.rounds);
  return finish(o, w, run, command, [&] {
    fmt::print("Lists of {} nodes of 256 B, built, exchanged as regions, changed, returned: {}\n",
               grouped(o.nodes), run["correct"].get<bool>() ? "correct" : "WRONG");
    fmt::print("Allocation: {:.0f} ns, {:.4f} messages per call\n", cost.nanoseconds,
               cost.messages);
    if (has_by_node)
      fmt::print(
          "Node by node: {:.4g} s with one-sided get and put ({:.1f} times as long), {:.4g} s with "
          "request and reply ({:.1f} times)\n",
          by_node_seconds[0], by_node_seconds[0] / seconds, by_node_seconds[1],
          by_node_seconds[1] / seconds);
  });
}

/// Returns the number of workers of the simulated network, 0 under mpirun. The applications check
/// it before the cluster starts.
unsigned workers_of(const cluster_options& o) {
  return o.simulate == 0
             ? 0
             : cluster::shape::for_nodes(static_cast<unsigned>(o.simulate), o.tree()).workers();
}

}  // namespace

void add_cluster_apps(const command_line& cluster, action& chosen) {
  {
    auto o = std::make_shared<bodies_options>();
    const command_line command = cluster.add_subcommand(
        "barnes-hut", "N-body simulation: an octree with a region per level; needs 2^k workers");
    add_count(command, "--bodies", o->bodies, "Number of bodies", 2, max_input);
    add_count(command, "--steps", o->steps, "Number of time steps", 1, max_input);
    const auto theta = [](const std::string& text) { return parse_real(text, 0, 1); };
    add_parsed(command, "--theta", o->theta, theta,
               "Open cells that are nearer than their size / theta", "X");
    command.add_flag("!--no-check", o->check, "Skip the comparison with a sum over all pairs");
    command.add_option("--picture", o->picture, "Draw the bodies into this SVG file");
    add_cluster_options(command, *o);
    command.callback([o, &chosen] {
      chosen = [o] {
        if (const unsigned w = workers_of(*o); w != 0 && !std::has_single_bit(w))
          throw input_error(fmt::format("{} ranks make {} workers; Barnes-Hut needs a power of two",
                                        o->simulate, w));
        return on_cluster(*o, [&](auto& w, auto& bar) { return run_bodies(*o, w, bar); });
      };
    });
  }
  {
    auto o = std::make_shared<mesh_options>();
    const command_line command = cluster.add_subcommand(
        "delaunay", "Delaunay triangulation over a hierarchy of regions; needs 4^k workers");
    add_count(command, "--points", o->points, "Number of points", 3, max_input);
    command.add_flag("--hand-over", o->hand_over, "Hand quadrants over instead of copying them");
    command.add_flag("!--no-check", o->check, "Skip the check of all triangles");
    command.add_option("--picture", o->picture, "Draw the triangles into this SVG file");
    add_cluster_options(command, *o);
    command.callback([o, &chosen] {
      chosen = [o] {
        if (const unsigned w = workers_of(*o);
            w != 0 && (!std::has_single_bit(w) || std::countr_zero(w) % 2 != 0))
          throw input_error(fmt::format(
              "{} ranks make {} workers; the triangulation needs a power of four", o->simulate, w));
        return on_cluster(*o, [&](auto& w, auto& bar) { return run_mesh(*o, w, bar); });
      };
    });
  }
  {
    auto o = std::make_shared<lists_options>();
    const command_line command = cluster.add_subcommand(
        "list-exchange", "Exchange linked lists as whole regions; under mpirun also node by node");
    add_count(command, "--nodes", o->nodes, "Nodes in the list of each worker", 1, max_input);
    add_count(command, "--rounds", o->rounds, "Number of rounds through all pairs of workers", 1,
              std::numeric_limits<unsigned>::max());
    o->separate_memory = true;  // regions are copied; there are no hand-overs
    add_cluster_options(command, *o);
    command.callback([o, &chosen] {
      chosen = [o] {
        return on_cluster(*o, [&](auto& w, auto& bar) { return run_lists(*o, w, bar); });
      };
    });
  }
}

}  // namespace quarry::tool
