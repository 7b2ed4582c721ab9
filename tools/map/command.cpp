// SPDX-License-Identifier: Apache-2.0
/// quarry map: draws the layout of a heap after a random workload.

#include "common/command.hpp"
#include "bench/environment.hpp"
#include "bench/record_file.hpp"
#include "common/catalogue.hpp"
#include "common/output.hpp"
#include "common/text.hpp"
#include "map/picture.hpp"
#include "map/run.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace quarry::tool {
namespace {

struct map_options {
  std::string allocator = "Quarry";
  std::string output;
  std::string out;
  map_plan plan;
  bool json = false;
};

struct picture {
  std::string name;
  map_result result;
};

picture run_workload(const map_options& o) {
  const auto names = find_allocators(o.allocator);
  const auto mapping = mapping_allocators();
  const auto list = [&] {
    std::vector<std::string> all;
    all.reserve(mapping.size());
    for (const mapping_entry& e : mapping) all.emplace_back(e.name);
    return joined(all);
  };
  if (names.size() != 1) throw input_error("--allocator: give one of " + list());
  const auto entry = std::find_if(mapping.begin(), mapping.end(),
                                  [&](const mapping_entry& e) { return e.name == names[0]; });
  if (entry == mapping.end())
    throw input_error(std::string(names[0]) +
                      " cannot report the layout of its pool; these allocators can: " + list());
  if (o.plan.heap < entry->min_pool)
    throw input_error(fmt::format("--heap {} is too small for {}: the minimum is {}",
                                  to_text(bytes(o.plan.heap)), entry->name,
                                  to_text(bytes(entry->min_pool))));
  return {std::string(entry->name), entry->run(o.plan)};
}

map_caption caption_of(const map_options& o, const picture& p) {
  const heap_statistics& s = p.result.statistics;
  map_caption c;
  c.title = fmt::format("{}: heap of {} after {} rounds", p.name, to_text(bytes(o.plan.heap)),
                        o.plan.rounds);
  c.workload = fmt::format(
      "{} lanes with up to {} blocks of {} to {}; each round frees {} % of the blocks; seed {}",
      grouped(o.plan.lanes), o.plan.blocks_per_lane, to_text(bytes(o.plan.sizes.least)),
      to_text(bytes(o.plan.sizes.most)), o.plan.free_percent, o.plan.seed);
  if (s.live_bytes) c.figures += fmt::format("{} live", to_text(bytes(*s.live_bytes)));
  if (s.live_blocks) c.figures += fmt::format(" in {} blocks", grouped(*s.live_blocks));
  if (s.free_bytes) c.figures += fmt::format("; {} free", to_text(bytes(*s.free_bytes)));
  if (s.largest_free)
    c.figures += fmt::format(", largest free run {}", to_text(bytes(*s.largest_free)));
  if (s.fragmentation())
    c.figures += fmt::format(", external fragmentation {:.0f} %", 100 * *s.fragmentation());
  if (s.address_range_bytes)
    c.figures += fmt::format("; address range {}", to_text(bytes(*s.address_range_bytes)));
  c.figures += fmt::format("; {} allocations failed", grouped(s.failures.count));
  return c;
}

nlohmann::ordered_json map_json(const map_options& o, const picture& p) {
  const heap_statistics& s = p.result.statistics;
  const auto known = [](const auto& n) {
    return n ? nlohmann::ordered_json(*n) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json out;
  out["allocator"] = p.name;
  out["seed"] = o.plan.seed;
  out["rounds"] = o.plan.rounds;
  out["lanes"] = o.plan.lanes;
  out["pool_bytes"] = s.pool_bytes;
  out["metadata_bytes"] = s.metadata_bytes;
  out["live_blocks"] = known(s.live_blocks);
  out["live_bytes"] = known(s.live_bytes);
  out["free_bytes"] = known(s.free_bytes);
  out["largest_free"] = known(s.largest_free);
  out["address_range_bytes"] = known(s.address_range_bytes);
  out["fragmentation"] = known(s.fragmentation());
  out["failed"] = s.failures.count;
  out["problem"] = p.result.problem;
  out["pieces"] = nlohmann::ordered_json::array();
  for (const pool_piece& piece : p.result.pieces)
    out["pieces"].push_back({{"offset", piece.offset},
                             {"size", piece.size},
                             {"kind", kind_name(piece.kind)},
                             {"block_bytes", piece.block_bytes},
                             {"blocks", piece.blocks},
                             {"live", piece.live}});
  return out;
}

/// Prints statistics by kind of piece and by size class.
void print_map_table(const map_options& o, const picture& p) {
  const heap_statistics& s = p.result.statistics;
  const map_caption caption = caption_of(o, p);
  fmt::print("{}\n{}\n{}\n\n", caption.title, caption.workload, caption.figures);
  table kinds({{"kind"}, {"bytes", right}, {"of the pool", right}});
  for (unsigned k = 0; k < s.piece_bytes.size(); ++k)
    if (s.piece_bytes[k] != 0)
      kinds.add({std::string(kind_name(static_cast<piece_kind>(k))),
                 to_text(bytes(s.piece_bytes[k])),
                 fmt::format("{:.1f} %", 100 * static_cast<double>(s.piece_bytes[k]) /
                                             static_cast<double>(o.plan.heap))});
  fmt::print("{}", kinds.text());
  table classes({{"block size", right}, {"live blocks", right}, {"free blocks", right}});
  bool any = false;
  for (const size_class_statistics& c : s.classes) {
    if (c.live_blocks + c.free_blocks == 0) continue;
    classes.add({to_text(bytes(c.block_bytes)), grouped(c.live_blocks), grouped(c.free_blocks)});
    any = true;
  }
  if (any) fmt::print("\n{}", classes.text());
}

heap_map cells_of(const picture& p) {
  std::uint64_t size = 0;
  for (const pool_piece& piece : p.result.pieces) size = std::max(size, piece.offset + piece.size);
  return cut_into_cells(p.result.pieces, size);
}

std::string as_svg(const map_options& o, const picture& p) {
  return draw_svg(cells_of(p), p.result.pieces, caption_of(o, p));
}

void write_map(const map_options& o, const picture& p) {
  write_file(o.output, o.output.ends_with(".png") ? draw_png(cells_of(p)) : as_svg(o, p));
}

/// Appends the picture as a record for quarry report.
void append_record(const map_options& o, const picture& p, record_file& file) {
  const nlohmann::ordered_json line = {{"kind", "map"},
                                       {"title", caption_of(o, p).title},
                                       {"allocator", p.name},
                                       {"backend", "cpu"},
                                       {"svg", as_svg(o, p)}};
  file.add(line);
}

int run_map(const map_options& o) {
  check_heap(o.plan.heap, describe_cpu());
  record_file file(o.out);
  const picture p = run_workload(o);
  if (!o.output.empty()) write_map(o, p);
  if (!o.out.empty()) append_record(o, p, file);
  if (o.json)
    fmt::print("{}\n", map_json(o, p).dump(2));
  else
    print_map_table(o, p);
  if (p.result.problem.empty()) return exit_success;
  fmt::print(stderr, "quarry: the heap metadata is inconsistent: {}\n", p.result.problem);
  return exit_check_failed;
}

}  // namespace

void add_map(const command_line& app, action& chosen) {
  const auto o = std::make_shared<map_options>();
  const command_line command =
      app.add_subcommand("map", "Draw the layout of a heap after a random workload");
  command.add_option("--allocator", o->allocator, "Allocator of the heap (default Quarry)", "NAME");
  const auto picture_file = [](const std::string& name) {
    if (!name.ends_with(".svg") && !name.ends_with(".png"))
      throw input_error(fmt::format("{} ends neither in .svg nor in .png", name));
    return name;
  };
  add_parsed(command, "--output", o->output, picture_file,
             "Write a picture to this file: .svg, or .png without legend", "FILE");
  command.add_option("--out", o->out, "Append the picture to this record file, for quarry report",
                     "FILE");
  command.add_flag("--json", o->json, "Print JSON, with every piece of the pool");
  const auto size = [](const std::string& text) { return parse_size(text).value(); };
  add_parsed(command, "--heap", o->plan.heap, size, "Size of the heap (default 16MiB)", "SIZE");
  const auto sizes = [](const std::string& text) {
    const size_range r = parse_size_range(text);
    if (r.least == 0) throw input_error("the minimum block size is 1 byte");
    if (r.most > std::uint64_t{1} << 30) throw input_error("the maximum block size is 1 GiB");
    return r;
  };
  add_parsed(command, "--sizes", o->plan.sizes, sizes, "Block sizes (default 16-4K)",
             "SIZE|MIN-MAX");
  add_count(command, "--lanes", o->plan.lanes, "Number of lanes (default 1024)", 1, 1 << 20);
  add_count(command, "--blocks-per-lane", o->plan.blocks_per_lane,
            "Maximum blocks per lane (default 8)", 1, 4096);
  add_count(command, "--rounds", o->plan.rounds,
            "Kernel launches; in each, the lanes free and allocate (default 6)", 1, 100'000);
  add_count(command, "--free-percent", o->plan.free_percent,
            "Probability that a round frees a block (default 40)", 0, 100);
  add_count(command, "--seed", o->plan.seed, "Seed of the workload (default 1)", 0);
  command.footer(
      "Examples:\n"
      "  quarry map --output heap.svg\n"
      "  quarry map --allocator CFMalloc --heap 4M --sizes 64-1K --rounds 50 --output heap.svg\n"
      "  quarry map --out figures.jsonl && quarry report figures.jsonl -o report.html\n"
      "  quarry map --json | jq '.pieces[] | select(.kind == \"free\")'");
  command.callback([o, &chosen] { chosen = [o] { return run_map(*o); }; });
}

}  // namespace quarry::tool
