// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quarry region: benchmarks, statistics and snapshots of regions. One file per subcommand.

#include "common/command.hpp"

namespace quarry::tool {

/// quarry region fragmentation | peers | stats | snapshot save|load|info
void add_region(CLI::App& app, action& chosen);

void add_region_fragmentation(CLI::App& region, action& chosen);
void add_region_peers(CLI::App& region, action& chosen);
void add_region_snapshot(CLI::App& region, action& chosen);

}  // namespace quarry::tool
