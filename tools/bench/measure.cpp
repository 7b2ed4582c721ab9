// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.hpp"

#include "bench/child.hpp"
#include "bench/claims.hpp"
#include "bench/points.hpp"
#include "bench/record_file.hpp"
#include "bench/table.hpp"
#include "common/command.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "costs/ledger_file.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace quarry::tool {
namespace {

std::size_t table_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0)
    return 120;
  return size.ws_col;
}

/// What is kept: a file of lines, a document, or both.
class record_keeper {
 public:
  record_keeper(const std::string& name, bool json) : json_(json), file_(name) {}
  void experiment(const nlohmann::ordered_json& line) { keep(line, "experiments"); }
  void point(const nlohmann::ordered_json& line) { keep(line, "points"); }
  void claim(const nlohmann::ordered_json& line) { keep(line, "claims"); }
  void print(bool ok) {
    document_["ok"] = ok;
    fmt::print("{}\n", document_.dump(2));
  }

 private:
  void keep(const nlohmann::ordered_json& line, const char* list) {
    file_.add(line);
    if (json_) document_[list].push_back(line);
  }

  bool json_;
  record_file file_;
  nlohmann::ordered_json document_ = {{"ok", true},
                                      {"experiments", nlohmann::ordered_json::array()},
                                      {"points", nlohmann::ordered_json::array()},
                                      {"claims", nlohmann::ordered_json::array()}};
};

/// The bar, with the time that is left if the rest goes as fast.
class cell_counter {
 public:
  explicit cell_counter(std::size_t total) : total_(total) {}

  void next(std::string_view what) {
    ++done_;
    show(what);
  }
  void show(std::string_view what) {
    const double share =
        static_cast<double>(done_) / static_cast<double>(std::max<std::size_t>(total_, 1));
    const double gone =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    std::string text = fmt::format("{}/{} cells", done_, total_);
    if (share > 0.02 && gone > 2) text += ", about " + left(gone / share - gone) + " left";
    bar_.show(share, fmt::format("{}: {}", text, what));
  }
  void clear() { bar_.clear(); }

 private:
  static std::string left(double seconds) {
    return seconds < 90 ? fmt::format("{:.0f} s", seconds)
                        : fmt::format("{:.0f} min", seconds / 60);
  }

  std::size_t total_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  progress bar_;
};

void print_heading(const bench_plan& p) {
  fmt::print("{} experiments: {} lanes on {}, heap {}, medians of {}.\n", p.experiments.size(),
             grouped(p.scale.lanes), p.backend.description, to_text(p.scale.heap),
             p.request.repeats);
  if (!p.gpu())
    fmt::print(
        "Times are the CPU executor's: they say nothing about a GPU; counts of atomics are "
        "exact.\n");
  std::fflush(stdout);
}

std::size_t cells_in(const std::vector<bench_batch_of_jobs>& batches) {
  std::size_t n = 0;
  for (const bench_batch_of_jobs& batch : batches)
    for (const bench_job& job : batch) n += job.request.cells.size();
  return n;
}

/// Registers are of the compiler that counted them, whatever machine is measured.
bench_environment where_of(const experiment& e, const bench_plan& p) {
  if (!e.from_ledger()) return p.where;
  bench_environment ledger = p.where;
  ledger.backend = "cuda";
  ledger.device = "sm_90";
  ledger.driver = ledger.cuda = "";
  ledger.compiler = "nvcc " + register_compiler();
  return ledger;
}

class experiment_run {
 public:
  experiment_run(const bench_options& o, const bench_plan& p)
      : plan_(p), keeper_(o.out, o.json), json_(o.json) {
    for (const experiment* e : p.experiments) {
      jobs_.push_back(jobs_of(p, *e));
      total_ += cells_in(jobs_.back());
    }
  }

  int run() {
    if (!json_) print_heading(plan_);
    cell_counter counter(total_);
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const experiment& e = *plan_.experiments[i];
      if (subjects_of(e, plan_.allocators).empty()) continue;
      keeper_.experiment(experiment_record(e, plan_.gpu()));
      const std::size_t first = points_.size();
      if (e.from_ledger())
        for (const bench_point& p : points_of_ledger(e, subjects_of(e, plan_.allocators))) keep(p);
      for (const bench_batch_of_jobs& batch : jobs_[i]) measure(e, batch, counter);
      if (json_) continue;
      counter.clear();
      fmt::print("\n{}", experiment_text(e, in_order(first), table_width(), plan_.gpu()));
      std::fflush(stdout);
    }
    counter.clear();
    return finish();
  }

 private:
  void measure(const experiment& e, const bench_batch_of_jobs& batch, cell_counter& counter) {
    std::vector<bench_request> requests;
    for (const bench_job& job : batch) requests.push_back(job.request);
    const auto what = [&](std::size_t job) {
      return fmt::format("{}, {}", e.id, batch[std::min(job, batch.size() - 1)].subject.series);
    };
    counter.show(what(0));
    bench_in_children(requests,
                      [&](std::size_t job, const bench_cell& cell, const bench_figures& f) {
                        for (const bench_point& p : points_of(e, batch[job].subject, cell, f))
                          keep(p);
                        counter.next(what(job));
                      });
  }

  /// The points of an experiment, as the allocators were typed.
  std::vector<bench_point> in_order(std::size_t first) const {
    std::vector<bench_point> these(points_.begin() + static_cast<std::ptrdiff_t>(first),
                                   points_.end());
    const auto place = [&](const bench_point& p) {
      return std::find(plan_.allocators.begin(), plan_.allocators.end(), p.allocator);
    };
    std::stable_sort(these.begin(), these.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    return these;
  }

  void keep(const bench_point& p) {
    points_.push_back(p);
    keeper_.point(point_record(p, where_of(*p.of, plan_), plan_.command(*p.of, p.allocator)));
  }

  int finish() {
    const std::vector<bench_claim> claims = claims_of(points_);
    for (const bench_claim& c : claims) keeper_.claim(claim_record(c, plan_.where));
    const bool ok = std::all_of(points_.begin(), points_.end(),
                                [](const bench_point& p) { return p.figures.sound(); });
    if (json_) {
      keeper_.print(ok);
    } else {
      fmt::print("\n{}", verdict_text(points_));
      if (!claims.empty())
        fmt::print("\nWhat the papers say, and here:\n\n{}", claims_text(claims));
    }
    return ok ? exit_success : exit_check_failed;
  }

  const bench_plan& plan_;
  record_keeper keeper_;
  bool json_;
  std::vector<std::vector<bench_batch_of_jobs>> jobs_;
  std::size_t total_ = 0;
  std::vector<bench_point> points_;
};

}  // namespace

int measure(const bench_options& options, const bench_plan& plan) {
  return experiment_run(options, plan).run();
}

}  // namespace quarry::tool
