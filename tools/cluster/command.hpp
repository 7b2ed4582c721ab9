// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `quarry cluster`: regions across processes, from the command line. apps.cpp and scaling.cpp hold
/// the subcommands; engine.hpp runs their programs under mpirun or in the simulated network.

#include "common/command.hpp"

namespace quarry::tool {

/// Adds `quarry cluster barnes-hut | delaunay | list-exchange | scaling`.
void add_cluster(CLI::App& app, action& chosen);

void add_cluster_apps(CLI::App& cluster, action& chosen);
void add_cluster_scaling(CLI::App& cluster, action& chosen);

}  // namespace quarry::tool
