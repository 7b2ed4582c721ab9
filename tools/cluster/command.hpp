// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quarry cluster: regions across processes, from the command line. One file a subcommand; how a
/// program becomes a cluster, under mpirun or simulated, is in cluster_engine.hpp.

#include "common/command.hpp"

namespace quarry::tool {

/// quarry cluster barnes-hut | delaunay | list-exchange | scaling | plot
void add_cluster(CLI::App& app, action& chosen);

void add_cluster_apps(CLI::App& cluster, action& chosen);
void add_cluster_scaling(CLI::App& cluster, action& chosen);
void add_cluster_plot(CLI::App& cluster, action& chosen);

}  // namespace quarry::tool
