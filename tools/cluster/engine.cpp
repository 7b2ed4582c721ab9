// SPDX-License-Identifier: Apache-2.0
#include "cluster/engine.hpp"
#include "common/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace quarry::tool {

std::string cluster_options::command(const std::string& app, unsigned ranks) const {
  const cluster_options usual;
  std::string text = fmt::format("quarry cluster {}", app);
  const auto add_changed = [&](const char* option, std::uint64_t value, std::uint64_t unchanged) {
    if (value != unchanged) text += fmt::format(" {} {}", option, value);
  };
  add_changed("--schedulers-each", schedulers_each, usual.schedulers_each);
  add_changed("--workers-each", workers_each, usual.workers_each);
  add_changed("--seed", seed, usual.seed);
  add_changed("--reserve-pages", tuning.reserve_pages, usual.tuning.reserve_pages);
  add_changed("--low-pages", tuning.low_pages, usual.tuning.low_pages);
  add_changed("--load-change", tuning.load_change, usual.tuning.load_change);
  if (no_leases) text += " --no-leases";
  return simulate != 0 ? fmt::format("{} --simulate {}", text, simulate)
                       : fmt::format("mpirun -n {} {}", ranks, text);
}

void add_low_pages(const command_line& command, cluster::scheduler_tuning& tuning) {
  add_count(command, "--low-pages", tuning.low_pages,
            "Free pages below which a scheduler requests more before an allocation needs them "
            "(0: only then)",
            0, 1u << 20);
}

void add_cluster_options(const command_line& command, cluster_options& o) {
  o.arguments = [command] { return command.arguments(); };
  add_count(command, "--simulate", o.simulate,
            "Simulate a network of N ranks (workers and schedulers) in virtual time", 2, 100'000);
  add_count(command, "--schedulers-each", o.schedulers_each,
            "Maximum number of schedulers below a scheduler", 2, 100'000);
  add_count(command, "--workers-each", o.workers_each,
            "Maximum number of workers below a scheduler", 1, 100'000);
  add_count(command, "--seed", o.seed, "Seed of the input and of the simulated delays");
  add_count(command, "--reserve-pages", o.tuning.reserve_pages,
            "Free pages that a scheduler obtains at once, for each scheduler below and itself", 1,
            1u << 20);
  add_low_pages(command, o.tuning);
  add_count(command, "--load-change", o.tuning.load_change,
            "Regions by which a scheduler's load changes before it is reported", 1, 1u << 30);
  command.add_flag("--no-leases", o.no_leases, "Send a message for every allocation");
  command.add_flag(
      "--apart,!--together", o.separate_memory,
      fmt::format("Workers of a host share no memory: huge pages, but hand-overs copy{}",
                  o.separate_memory ? " (default; --together shares it)" : ""));
  command.add_flag("--status", o.status, "Print the progress to stderr every second");
  command.add_flag("--json", o.json, "Print records (one JSON object per line) for quarry report");
  command.add_option("--out", o.out, "Append the records to this file", "FILE");
}

namespace {

/// Prints a line per second: messages so far, and how evenly regions are spread over schedulers.
class simulation_status {
 public:
  explicit simulation_status(const cluster::simulation& s) : sim_(&s) {}
  void operator()(std::uint64_t events) {
    if (events % 4096 != 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(1)) return;
    last_ = now;
    std::uint64_t least = ~std::uint64_t{0}, most = 0, messages = 0, served = 0;
    for (cluster::node_id n = 0; n < sim_->tree().schedulers(); ++n) {
      const cluster::scheduler_statistics s = sim_->statistics_of(n);
      least = std::min(least, s.regions);
      most = std::max(most, s.regions);
      messages += s.messages;
      served += s.served;
    }
    fmt::print(stderr, "{} messages, {} requests served, {} to {} regions per scheduler\n",
               grouped(messages), grouped(served), least, most);
  }

 private:
  const cluster::simulation* sim_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

int simulate(const cluster_options& o, const cluster_program& program) {
  require_one_process();
  cluster::simulation_options so;
  so.tree = o.tree();
  so.workers = cluster::shape::for_nodes(static_cast<unsigned>(o.simulate), so.tree).workers();
  so.seed = o.seed;
  so.measure = true;
  so.worker.leases = !o.no_leases;
  so.tuning = o.tuning;
  so.stack = std::size_t{1} << 20;
  cluster::simulation s(so);
  run_progress bar(!o.status);
  if (o.status)
    s.after_event = simulation_status(s);
  else
    s.after_event = [&](std::uint64_t events) { bar.show_events(events); };
  int result = 0;
  s.run([&](cluster::worker& w) { result = std::max(result, program(w, bar)); });
  if (const std::string fault = s.check_invariants(); !fault.empty()) throw error(fault);
  return result;
}

bool is_under_mpirun() {
  static constexpr const char* variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK",
                                              "SLURM_PROCID"};
  return std::ranges::any_of(variables,
                             [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

void require_one_process() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* ranks = std::getenv(name); ranks != nullptr && std::string_view(ranks) != "1")
      throw input_error(
          fmt::format("mpirun started {} ranks, and one process simulates all ranks; start a "
                      "simulation without mpirun",
                      ranks));
}

int on_cluster(const cluster_options& o, const cluster_program& program) {
  if (o.simulate != 0) return simulate(o, program);
  if (!built_with_mpi())
    throw input_error("this program was built without MPI; use --simulate RANKS");
  if (!is_under_mpirun())
    throw input_error("not started by mpirun; use mpirun -n RANKS, or --simulate RANKS");
  return run_under_mpi(o, program);
}

std::vector<worker_report> collect(cluster::worker& w, const worker_report& mine) {
  std::vector<worker_report> all;
  apps::mailbox post(w);
  if (w.number() == 0) {
    all.push_back(mine);
    for (unsigned i = 1; i < w.count(); ++i) all.push_back(post.receive<worker_report>(i).at(0));
  } else {
    post.send<worker_report>(0, {&mine, 1});
  }
  post.close();
  return all;
}

cluster_json summarise_run(const std::string& app, const cluster_options& o, cluster::worker& w,
                           const std::vector<worker_report>& all) {
  apps::time_shares sum;
  cluster::worker_statistics calls;
  double longest = 0;
  bool correct = true;
  std::uint64_t work = 0;
  for (const worker_report& r : all) {
    sum += r.time;
    longest = std::max(longest, r.time.total());
    calls.calls += r.calls.calls;
    calls.messages += r.calls.messages;
    calls.allocations += r.calls.allocations;
    calls.from_leases += r.calls.from_leases;
    calls.bytes_sent += r.calls.bytes_sent;
    work += r.work;
    correct = correct && r.correct;
  }
  const cluster::shape& tree = w.tree();
  const auto workers = static_cast<double>(all.size());
  cluster_json run;
  run["app"] = app;
  run["network"] = o.simulate != 0 ? "simulated" : "mpi";
  run["workers"] = tree.workers();
  run["schedulers"] = tree.schedulers();
  run["levels"] = tree.levels();
  run["leases"] = !o.no_leases;
  run["seconds"] = longest;
  // Means over the workers, as in Figure 4 of Lyberis et al. (2012).
  run["computation"] = sum.computation / workers;
  run["worker_communication"] = sum.workers / workers;
  run["scheduler_communication"] = sum.schedulers / workers;
  run["calls"] = calls.calls;
  run["allocations"] = calls.allocations;
  run["messages_per_call"] = static_cast<double>(calls.messages) /
                             static_cast<double>(std::max<std::uint64_t>(calls.calls, 1));
  run["bytes_sent"] = calls.bytes_sent;
  run["work"] = work;
  run["correct"] = correct;
  return run;
}

void print_summary(const cluster_json& run) {
  const auto percent = [&](const char* activity) {
    const double all = run["computation"].get<double>() +
                       run["worker_communication"].get<double>() +
                       run["scheduler_communication"].get<double>();
    return all == 0 ? 0 : 100 * run[activity].get<double>() / all;
  };
  fmt::print("{} workers under {} scheduler{} in {} level{}, {}\n", run["workers"].get<unsigned>(),
             run["schedulers"].get<unsigned>(), run["schedulers"] == 1 ? "" : "s",
             run["levels"].get<unsigned>(), run["levels"] == 1 ? "" : "s",
             run["network"].get<std::string>());
  fmt::print(
      "{:.4g} s: {:.0f} % computation, {:.0f} % waiting for workers, {:.0f} % for schedulers\n",
      run["seconds"].get<double>(), percent("computation"), percent("worker_communication"),
      percent("scheduler_communication"));
  fmt::print("{} allocations, {:.3f} messages per call, {} sent between workers\n",
             grouped(run["allocations"].get<std::uint64_t>()),
             run["messages_per_call"].get<double>(),
             to_text(bytes(run["bytes_sent"].get<std::uint64_t>())));
}

}  // namespace quarry::tool
