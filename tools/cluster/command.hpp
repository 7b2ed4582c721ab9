// SPDX-License-Identifier: Apache-2.0
#pragma once
/// `quarry cluster`: regions across processes, from the command line. apps.cpp and scaling.cpp hold
/// the subcommands; engine.hpp runs their programs under mpirun or in the simulated network.

#include "common/command.hpp"

namespace quarry::tool {

/// Adds `quarry cluster barnes-hut | delaunay | list-exchange | scaling`.
void add_cluster(const command_line& app, action& chosen);

void add_cluster_apps(const command_line& cluster, action& chosen);
void add_cluster_scaling(const command_line& cluster, action& chosen);

}  // namespace quarry::tool
