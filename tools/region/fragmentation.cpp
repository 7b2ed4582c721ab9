// SPDX-License-Identifier: Apache-2.0
/// quarry region fragmentation: the fragmentation benchmark of Lyberis et al. (2012), Figures 4a to
/// 4c.
///
/// The benchmark uses one region. Each step allocates an object or frees a random one. Reported
/// over time: full and partial slabs, requested bytes, and the result of packing the region.
///
/// Two workloads that the paper does not have show the memory from which regions grow: 16 regions
/// compete for it, each step is in one of them, and each is packed.

#include "bench/environment.hpp"
#include "bench/record_file.hpp"
#include "chart/svg_chart.hpp"
#include "common/output.hpp"
#include "common/text.hpp"
#include "region/command.hpp"
#include "region/workloads.hpp"

#include <quarry/region.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace quarry::tool {
namespace {

struct fragmentation_options {
  std::string workload = "all";
  std::uint64_t steps = 200'000;
  std::uint64_t samples = 20;
  std::string plot;
  std::string out;
  bool json = false;
};

struct fragmentation_workload {
  const char* name;
  const char* description;
  const char* source;
  bool phases;  // 75 %, 25 %, 70 %, 30 %, 60 % allocations in turn; otherwise 60 % throughout
  bool sizes;   // the paper's six sizes; otherwise 192 B
  unsigned regions;
  growth_place growth;
};
constexpr fragmentation_workload fragmentation_workloads[] = {
    {"growing", "192 B, 60 % allocations", "Lyberis et al. 2012, Figure 4a", false, false, 1,
     growth_place::nearest},
    {"phases", "192 B, in phases", "Lyberis et al. 2012, Figure 4b", true, false, 1,
     growth_place::nearest},
    {"sizes", "192 B and five other sizes, in phases", "Lyberis et al. 2012, Figure 4c", true, true,
     1, growth_place::nearest},
    {"regions", "the same in 16 regions, which grow from the nearest free memory",
     "compare Lyberis et al. 2012, Figure 4c", true, true, 16, growth_place::nearest},
    {"lowest", "the same in 16 regions, which grow from the lowest free memory",
     "compare Lyberis et al. 2012, Figure 4c", true, true, 16, growth_place::lowest}};

struct sample {
  std::uint64_t step;
  std::uint64_t asked;  // requested bytes of live objects
  pool_statistics slabs;
  double ranges_per_mib;
  double packed_per_live;
  std::uint64_t ranges;
};

struct figure {
  const fragmentation_workload* workload;
  std::vector<sample> samples;
};

/// Sums over the regions. Each region is packed on its own.
sample take_sample(region_tree& tree, const std::vector<region>& regions, std::uint64_t step,
                   std::uint64_t asked) {
  pool_statistics slabs;
  packed_region total;
  for (const region& r : regions) {
    const packed_region packed = pack(tree, r.id()).value();
    total.ranges.insert(total.ranges.end(), packed.ranges.begin(), packed.ranges.end());
    total.packed_bytes += packed.packed_bytes;
    total.live_bytes += packed.live_bytes;
    const pool_statistics pool = tree.statistics(r.id()).value().pool;
    slabs.full_slabs += pool.full_slabs;
    slabs.partial_slabs += pool.partial_slabs;
    slabs.empty_slabs += pool.empty_slabs;
  }
  return {
      step, asked, slabs, total.ranges_per_mib(), total.bytes_per_live_byte(), total.ranges.size()};
}

figure run_fragmentation(const fragmentation_workload& what, const fragmentation_options& o) {
  static constexpr unsigned phases[] = {75, 25, 70, 30, 60};
  tree_options options;
  options.growth = what.growth;
  region_tree tree(options);
  std::vector<region> regions;
  for (unsigned i = 0; i < what.regions; ++i) regions.emplace_back(tree);
  quick_random random(4);
  struct object {
    void* p;
    std::size_t size;
    region* in;
  };
  std::vector<object> live;
  std::uint64_t asked = 0;
  figure f{&what, {}};
  for (std::uint64_t step = 0; step <= o.steps; ++step) {
    if (step % std::max<std::uint64_t>(o.steps / o.samples, 1) == 0)
      f.samples.push_back(take_sample(tree, regions, step, asked));
    const unsigned percent =
        what.phases ? phases[std::min<std::uint64_t>(step * 5 / o.steps, 4)] : 60;
    if (random.below(100) < percent || live.empty()) {
      const std::size_t n = what.sizes ? paper_sizes[random.below(6)] : 192;
      region& r = regions[what.regions > 1 ? random.below(what.regions) : 0];
      live.push_back({r.allocate(n), n, &r});
      asked += n;
    } else {
      std::swap(live[random.below(live.size())], live.back());
      live.back().in->deallocate(live.back().p);
      asked -= live.back().size;
      live.pop_back();
    }
  }
  if (const std::string fault = tree.check_invariants(); !fault.empty()) throw error(fault);
  return f;
}

void print(const figure& f) {
  fmt::print("{}: {}\n", f.workload->name, f.workload->description);
  table t({{"step", right},
           {"live KiB", right},
           {"full", right},
           {"partial", right},
           {"empty", right},
           {"ranges", right},
           {"ranges/MiB", right},
           {"packed/live", right}});
  for (const sample& s : f.samples)
    t.add({grouped(s.step), grouped(s.asked / 1024), grouped(s.slabs.full_slabs),
           grouped(s.slabs.partial_slabs), grouped(s.slabs.empty_slabs), grouped(s.ranges),
           fmt::format("{:.2f}", s.ranges_per_mib), fmt::format("{:.3f}", s.packed_per_live)});
  fmt::print("{}\n", t.text());
}

nlohmann::ordered_json fragmentation_json(const figure& f) {
  nlohmann::ordered_json out;
  out["workload"] = f.workload->name;
  for (const sample& s : f.samples)
    out["samples"].push_back({{"step", s.step},
                              {"asked_bytes", s.asked},
                              {"full_slabs", s.slabs.full_slabs},
                              {"partial_slabs", s.slabs.partial_slabs},
                              {"empty_slabs", s.slabs.empty_slabs},
                              {"ranges", s.ranges},
                              {"ranges_per_mib", s.ranges_per_mib},
                              {"packed_per_live", s.packed_per_live}});
  return out;
}

/// The curves of a figure: slabs and, for comparison, requested bytes in slabs.
struct slab_curve {
  const char* name;
  double (*of)(const sample&);
};
constexpr slab_curve slab_curves[] = {
    {"full", [](const sample& s) { return static_cast<double>(s.slabs.full_slabs); }},
    {"partial", [](const sample& s) { return static_cast<double>(s.slabs.partial_slabs); }},
    {"requested bytes / 4096",
     [](const sample& s) { return static_cast<double>(s.asked) / 4096; }}};

/// Appends the records of a figure, for quarry report.
void append_record(const figure& f, const fragmentation_options& o, const bench_environment& where,
                   record_file& file) {
  const fragmentation_workload& what = *f.workload;
  const std::string id = fmt::format("region-{}", what.name);
  file.add(
      {{"kind", "experiment"},
       {"id", id},
       {"title", fmt::format("Slabs of a region: {}", what.description)},
       {"source", what.source},
       {"x", {{"name", "steps"}, {"unit", ""}, {"scale", "linear"}}},
       {"y", {{{"field", "slabs"}, {"name", "slabs"}, {"scale", "linear"}, {"better", "none"}}}},
       {"form", "lines"},
       {"note", "each step allocates an object or frees a random one"}});
  for (const slab_curve& curve : slab_curves)
    for (const sample& s : f.samples) {
      nlohmann::ordered_json point = {
          {"kind", "point"},
          {"experiment", id},
          {"allocator", "regions"},
          {"series", curve.name},
          {"x", s.step},
          {"command",
           fmt::format("quarry region fragmentation --workload {} --steps {} --samples {}",
                       what.name, o.steps, o.samples)}};
      point.update(environment_fields(where));
      point.update({{"outcome", "ok"}, {"note", ""}, {"slabs", curve.of(s)}});
      file.add(point);
    }
}

chart slabs_of(const figure& f) {
  chart c;
  c.title = f.workload->name;
  c.subtitle = "slabs over steps";
  c.x = {"steps", "", axis_scale::linear, {}};
  c.y = {"slabs", "", axis_scale::linear, {}};
  for (const slab_curve& drawn : slab_curves) {
    const bool for_comparison = &drawn == std::end(slab_curves) - 1;
    chart_curve curve{drawn.name,
                      "",
                      style_of(static_cast<unsigned>(c.curves.size()), for_comparison ? 1 : 0),
                      {}};
    for (const sample& s : f.samples)
      curve.points.push_back({static_cast<double>(s.step), drawn.of(s)});
    c.curves.push_back(curve);
  }
  return c;
}

int run_fragmentation(const fragmentation_options& o) {
  record_file file(o.out);
  std::vector<figure> figures;
  for (const fragmentation_workload& what : fragmentation_workloads)
    if (o.workload == "all" || o.workload == what.name)
      figures.push_back(run_fragmentation(what, o));
  if (!o.plot.empty()) {
    std::vector<chart> charts;
    charts.reserve(figures.size());
    for (const figure& f : figures) charts.push_back(slabs_of(f));
    write_file(o.plot, chart_svg(charts));
  }
  const bench_environment where = describe_host();
  for (const figure& f : figures) append_record(f, o, where, file);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const figure& f : figures)
    if (o.json)
      all.push_back(fragmentation_json(f));
    else
      print(f);
  if (o.json) fmt::print("{}\n", all.dump(2));
  return exit_success;
}

}  // namespace

void add_region_fragmentation(const command_line& region, action& chosen) {
  auto o = std::make_shared<fragmentation_options>();
  const command_line command = region.add_subcommand(
      "fragmentation",
      "Full and partial slabs over time under random allocation (Lyberis et al., Figures 4a-c)");
  std::vector<std::string> names{"all"};
  for (const fragmentation_workload& what : fragmentation_workloads) names.emplace_back(what.name);
  add_choice(command, "--workload", o->workload, names, "Workload");
  add_count(command, "--steps", o->steps, "Number of steps; each allocates or frees one object", 5);
  add_count(command, "--samples", o->samples, "Number of samples", 1);
  command.add_option("--plot", o->plot, "Write the curves to this SVG file");
  command.add_option("--out", o->out, "Append lines of JSON to this file, for quarry report",
                     "FILE");
  command.add_flag("--json", o->json, "Print JSON");
  command.callback([o, &chosen] { chosen = [o] { return run_fragmentation(*o); }; });
}

}  // namespace quarry::tool
