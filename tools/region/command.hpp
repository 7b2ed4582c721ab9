// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quarry region: what the regions' benchmarks, statistics and snapshots look like from the command
/// line. One file a subcommand.

#include "common/command.hpp"

namespace quarry::tool {

/// quarry region fragmentation | peers | stats | snapshot save|load|info
void add_region(CLI::App& app, action& chosen);

void add_region_fragmentation(CLI::App& region, action& chosen);
void add_region_peers(CLI::App& region, action& chosen);
void add_region_snapshot(CLI::App& region, action& chosen);

}  // namespace quarry::tool
