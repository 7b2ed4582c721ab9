// SPDX-License-Identifier: Apache-2.0
#include "cluster/command.hpp"

namespace quarry::tool {

void add_cluster(const command_line& app, action& chosen) {
  const command_line cluster = app.add_subcommand(
      "cluster", "Run programs on regions across processes, under mpirun or simulated");
  cluster.require_subcommand();
  cluster.footer(
      "Examples:\n"
      "  mpirun -n 5 quarry cluster barnes-hut --bodies 10000\n"
      "  quarry cluster delaunay --simulate 17 --picture mesh.svg\n"
      "  quarry cluster scaling --most 8192 --plot scaling.svg\n"
      "  quarry cluster delaunay --simulate 5 --out runs.jsonl && quarry report runs.jsonl");
  add_cluster_apps(cluster, chosen);
  add_cluster_scaling(cluster, chosen);
}

}  // namespace quarry::tool
