// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quarry region: benchmarks, statistics and snapshots of regions. One file per subcommand.

#include "common/command.hpp"

namespace quarry::tool {

/// quarry region fragmentation | peers | stress | stats | snapshot save|load|info
void add_region(const command_line& app, action& chosen);

void add_region_fragmentation(const command_line& region, action& chosen);
void add_region_peers(const command_line& region, action& chosen);
void add_region_snapshot(const command_line& region, action& chosen);
void add_region_stress(const command_line& region, action& chosen);

}  // namespace quarry::tool
