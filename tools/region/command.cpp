// SPDX-License-Identifier: Apache-2.0
#include "region/command.hpp"

namespace quarry::tool {

void add_region(const command_line& app, action& chosen) {
  const command_line region =
      app.add_subcommand("region", "Regions on the CPU: fragmentation, speed, snapshots");
  region.require_subcommand();
  add_region_fragmentation(region, chosen);
  add_region_peers(region, chosen);
  add_region_snapshot(region, chosen);
  add_region_stress(region, chosen);
}

}  // namespace quarry::tool
