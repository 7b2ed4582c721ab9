// SPDX-License-Identifier: Apache-2.0
/// quarry region snapshot save|load|info and quarry region stats: saves a list whose nodes lie in a
/// region and its children, restores it at the same addresses, and prints statistics.

#include "common/text.hpp"
#include "region/command.hpp"
#include "region/workloads.hpp"

#include <quarry/region.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace quarry::tool {
namespace {

struct snapshot_arguments {
  std::string file;
  std::uint64_t nodes = 10'000;
  std::uint64_t regions = 3;
  bool json = false;
};

struct node {
  node* next;
  std::uint64_t number;
  std::uint64_t square;
};

/// Nodes have standard layout and point only into the regions, so any program can restore them.
node* build(region_tree& tree, const std::vector<region_id>& in, std::uint64_t count) {
  quick_random random(1);
  node* first = nullptr;
  for (std::uint64_t i = 0; i < count; ++i) {
    const region_id where = in[random.below(in.size())];
    const auto hole = tree.allocate(where, random.below(2000) + 1);
    const auto p = tree.allocate(where, sizeof(node) + random.below(400));
    if (!p) throw error(std::string("building the list: ") + to_text(p.status));
    first = new (*p) node{first, i, i * i};
    if (i % 2 == 0) tree.deallocate(hole.value());
  }
  return first;
}

std::uint64_t count_intact(const node* n) {
  std::uint64_t good = 0;
  for (; n != nullptr; n = n->next) {
    if (n->square != n->number * n->number)
      throw error("a restored node differs from the saved one");
    ++good;
  }
  return good;
}

int save_list(const snapshot_arguments& o) {
  tree_options where;
  where.where = snapshot_address;
  where.range = std::uint64_t{256} << 30;
  region_tree tree(where);
  std::vector<region_id> in{tree.create_region(root_region).value()};
  for (std::uint64_t i = 1; i < o.regions; ++i) in.push_back(tree.create_region(in[0]).value());
  save_snapshot(tree, in[0], o.file, build(tree, in, o.nodes));
  if (o.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"file", o.file}, {"nodes", o.nodes}}.dump(2));
  else
    fmt::print("{}: {} nodes in {} regions\n", o.file, grouped(o.nodes), o.regions);
  return exit_success;
}

int load_list(const snapshot_arguments& o) {
  region_tree tree(snapshot_options(o.file));
  const loaded_snapshot loaded = load_snapshot(tree, o.file);
  const std::uint64_t good = count_intact(static_cast<const node*>(loaded.root));
  const std::string fault = tree.check_invariants();
  if (!fault.empty()) throw error(fault);
  if (o.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"file", o.file}, {"nodes", good}}.dump(2));
  else
    fmt::print("{}: {} nodes restored at their addresses, all intact\n", o.file, grouped(good));
  return exit_success;
}

int print_header(const snapshot_arguments& o) {
  const snapshot_header h = snapshot_info(o.file);
  if (o.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"version", h.version},
                                              {"regions", h.regions},
                                              {"ranges", h.ranges},
                                              {"slabs", h.slabs},
                                              {"used_slabs", h.used_slabs},
                                              {"base", h.base},
                                              {"body_bytes", h.body_bytes}}
                           .dump(2));
    return exit_success;
  }
  fmt::print("{}: version {}, {} regions, {} ranges, {} of {} slabs used, {} at address {:#x}\n",
             o.file, h.version, h.regions, h.ranges, grouped(h.used_slabs), grouped(h.slabs),
             to_text(bytes(h.body_bytes)), h.base);
  return exit_success;
}

/// Prints one line per region of a snapshot.
int print_statistics(const snapshot_arguments& o) {
  region_tree tree(snapshot_options(o.file));
  const loaded_snapshot loaded = load_snapshot(tree, o.file);
  table t({{"region", right},
           {"objects", right},
           {"live", right},
           {"full", right},
           {"partial", right},
           {"free", right},
           {"held", right}});
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  tree.for_each_below(*tree.find(loaded.id), [&](region_tree::node_type& n) {
    const region_statistics s = tree.statistics(n.id()).value();
    t.add({grouped(n.id().number()), grouped(s.pool.objects), to_text(bytes(s.pool.live_bytes)),
           grouped(s.pool.full_slabs), grouped(s.pool.partial_slabs), grouped(s.pool.free_slabs),
           grouped(s.held_slabs)});
    out.push_back({{"region", n.id().number()},
                   {"objects", s.pool.objects},
                   {"live_bytes", s.pool.live_bytes},
                   {"full_slabs", s.pool.full_slabs},
                   {"partial_slabs", s.pool.partial_slabs},
                   {"free_slabs", s.pool.free_slabs},
                   {"held_slabs", s.held_slabs}});
  });
  const packed_region packed = pack(tree, loaded.id).value();
  if (o.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"regions", out},
                                              {"ranges", packed.ranges.size()},
                                              {"packed_bytes", packed.packed_bytes},
                                              {"live_bytes", packed.live_bytes}}
                           .dump(2));
    return exit_success;
  }
  fmt::print("{}\nPacked: {} in {} ranges, {:.3f} packed bytes per live byte.\n", t.text(),
             to_text(bytes(packed.packed_bytes)), packed.ranges.size(),
             packed.bytes_per_live_byte());
  return exit_success;
}

command_line add_file_command(const command_line& parent, const char* name, const char* help,
                              const std::shared_ptr<snapshot_arguments>& o, action& chosen,
                              int (*run)(const snapshot_arguments&)) {
  const command_line command = parent.add_subcommand(name, help);
  command.add_required("FILE", o->file, "The snapshot file");
  command.add_flag("--json", o->json, "Print JSON");
  command.callback([o, &chosen, run] { chosen = [o, run] { return run(*o); }; });
  return command;
}

}  // namespace

void add_region_snapshot(const command_line& region, action& chosen) {
  auto o = std::make_shared<snapshot_arguments>();
  add_file_command(region, "stats",
                   "Statistics of the regions in a snapshot: objects, slabs, packing", o, chosen,
                   print_statistics);
  const command_line snapshot =
      region.add_subcommand("snapshot", "Save regions to a file and restore them");
  snapshot.require_subcommand();
  const command_line command = add_file_command(
      snapshot, "save", "Build a list in regions and save the regions", o, chosen, save_list);
  add_count(command, "--nodes", o->nodes, "Number of nodes", 1, 1'000'000'000);
  add_count(command, "--regions", o->regions, "Number of regions that hold the list", 1, 1000);
  add_file_command(snapshot, "load", "Restore the list and check every node", o, chosen, load_list);
  add_file_command(snapshot, "info", "Print the header", o, chosen, print_header);
}

}  // namespace quarry::tool
