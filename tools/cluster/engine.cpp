// SPDX-License-Identifier: Apache-2.0
#include "cluster/engine.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace quarry::tool {

void add_cluster_options(CLI::App& command, cluster_options& o) {
  add_count(command, "--simulate", o.simulate,
            "This many ranks, schedulers included, in one process and virtual time", 2, 100'000);
  add_count(command, "--schedulers-each", o.schedulers_each,
            "At most so many schedulers below a scheduler", 2, 100'000);
  add_count(command, "--workers-each", o.workers_each, "At most so many workers below one", 1,
            100'000);
  add_count(command, "--seed", o.seed, "Decides everything random");
  command.add_flag("--no-leases", o.asks, "Every allocation asks a scheduler");
  command.add_flag(
      "--apart,!--together", o.apart,
      fmt::format("Workers of a host share no memory: huge pages, but hand-overs copy{}",
                  o.apart ? " (so it is, unless --together)" : ""));
  command.add_flag("--status", o.status, "A line on stderr every second");
  command.add_flag("--json", o.json, "Print one line of JSON");
}

namespace {

/// A line a second: how far the simulation is, and how the load is spread.
class simulated_status {
 public:
  explicit simulated_status(const cluster::simulation& s) : sim_(&s) {}
  void operator()(std::uint64_t events) {
    if (events % 4096 != 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(1)) return;
    last_ = now;
    std::uint64_t least = ~std::uint64_t{0}, most = 0, messages = 0, served = 0;
    for (cluster::node n = 0; n < sim_->tree().schedulers(); ++n) {
      const cluster::scheduler_statistics s = sim_->statistics_of(n);
      least = std::min(least, s.regions);
      most = std::max(most, s.regions);
      messages += s.messages;
      served += s.served;
    }
    fmt::print(stderr, "{} messages, {} requests served, regions of a scheduler {} to {}\n",
               grouped(messages), grouped(served), least, most);
  }

 private:
  const cluster::simulation* sim_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

int simulate(const cluster_options& o, const std::function<int(cluster::worker&)>& program) {
  cluster::simulation_options so;
  so.tree = o.tree();
  so.workers = cluster::shape::for_nodes(static_cast<unsigned>(o.simulate), so.tree).workers();
  so.seed = o.seed;
  so.measure = true;
  so.worker.leases = !o.asks;
  so.stack = std::size_t{1} << 20;
  cluster::simulation s(so);
  if (o.status) s.after_event = simulated_status(s);
  int result = 0;
  s.run([&](cluster::worker& w) { result = std::max(result, program(w)); });
  if (const std::string fault = s.check_invariants(); !fault.empty()) throw error(fault);
  return result;
}

bool is_under_mpirun() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace

int on_cluster(const cluster_options& o, const std::function<int(cluster::worker&)>& program) {
  if (o.simulate != 0) return simulate(o, program);
  if (!built_with_mpi())
    throw input_error("this program was built without MPI: give --simulate RANKS");
  if (!is_under_mpirun())
    throw input_error("start it with mpirun -n RANKS, or give --simulate RANKS");
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

nlohmann::ordered_json summary(const std::string& app, const cluster_options& o, cluster::worker& w,
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
  const double workers = static_cast<double>(all.size());
  nlohmann::ordered_json line;
  line["app"] = app;
  line["network"] = o.simulate != 0 ? "simulated" : "mpi";
  line["workers"] = tree.workers();
  line["schedulers"] = tree.schedulers();
  line["levels"] = tree.levels();
  line["leases"] = !o.asks;
  line["seconds"] = longest;
  // Means of the workers, as in the paper's figures.
  line["computation"] = sum.computation / workers;
  line["worker_communication"] = sum.workers / workers;
  line["scheduler_communication"] = sum.schedulers / workers;
  line["calls"] = calls.calls;
  line["allocations"] = calls.allocations;
  line["messages_per_call"] = static_cast<double>(calls.messages) /
                              static_cast<double>(std::max<std::uint64_t>(calls.calls, 1));
  line["bytes_sent"] = calls.bytes_sent;
  line["work"] = work;
  line["correct"] = correct;
  return line;
}

void print_summary(const nlohmann::ordered_json& line) {
  const auto percent = [&](const char* share) {
    const double all = line["computation"].get<double>() +
                       line["worker_communication"].get<double>() +
                       line["scheduler_communication"].get<double>();
    return all == 0 ? 0 : 100 * line[share].get<double>() / all;
  };
  fmt::print("{} workers under {} scheduler{} in {} level{}, {}\n", line["workers"].get<unsigned>(),
             line["schedulers"].get<unsigned>(), line["schedulers"] == 1 ? "" : "s",
             line["levels"].get<unsigned>(), line["levels"] == 1 ? "" : "s",
             line["network"].get<std::string>());
  fmt::print(
      "{:.4g} s: {:.0f} % computation, {:.0f} % waiting for workers, {:.0f} % for schedulers\n",
      line["seconds"].get<double>(), percent("computation"), percent("worker_communication"),
      percent("scheduler_communication"));
  fmt::print("{} allocations, {:.3f} messages a call, {} sent between workers\n",
             grouped(line["allocations"].get<std::uint64_t>()),
             line["messages_per_call"].get<double>(),
             to_text(bytes(line["bytes_sent"].get<std::uint64_t>())));
}

}  // namespace quarry::tool
