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

/// Writes records to a file (--out), collects them in one JSON document (--json), or both.
class record_writer {
 public:
  record_writer(const std::string& name, bool json) : json_(json), file_(name) {}
  void experiment(const nlohmann::ordered_json& line) { add(line, "experiments"); }
  void point(const nlohmann::ordered_json& line) { add(line, "points"); }
  void claim(const nlohmann::ordered_json& line) { add(line, "claims"); }
  void print(bool ok) {
    document_["ok"] = ok;
    fmt::print("{}\n", document_.dump(2));
  }

 private:
  void add(const nlohmann::ordered_json& line, const char* list) {
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

/// Shows a progress bar with an estimate of the remaining time.
class measurement_counter {
 public:
  explicit measurement_counter(std::size_t total) : total_(total) {}

  void next(std::string_view what) {
    ++done_;
    show(what);
  }
  void show(std::string_view what) {
    const double fraction =
        static_cast<double>(done_) / static_cast<double>(std::max<std::size_t>(total_, 1));
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    std::string text = fmt::format("{}/{} measurements", done_, total_);
    if (fraction > 0.02 && elapsed > 2)
      text += ", about " + time_text(elapsed / fraction - elapsed) + " left";
    progress_.show(fraction, fmt::format("{}: {}", text, what));
  }
  void clear() { progress_.clear(); }

 private:
  static std::string time_text(double seconds) {
    return seconds < 90 ? fmt::format("{:.0f} s", seconds)
                        : fmt::format("{:.0f} min", seconds / 60);
  }

  std::size_t total_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  progress progress_;
};

void print_heading(const bench_plan& p) {
  fmt::print("{} experiments: {} lanes on {}, heap {}, median of {} passes.\n",
             p.experiments.size(), grouped(p.scale.lanes), p.backend.description,
             to_text(p.scale.heap), p.request.repeats);
  if (!p.gpu())
    fmt::print(
        "Times are those of the CPU executor and do not predict a GPU. Counts of atomics are "
        "exact.\n");
  std::fflush(stdout);
}

std::size_t measurements_in(const std::vector<bench_job_batch>& batches) {
  std::size_t n = 0;
  for (const bench_job_batch& batch : batches)
    for (const bench_job& job : batch) n += job.request.measurements.size();
  return n;
}

/// Returns the environment of an experiment. Register counts come from the compiler that produced
/// the cost ledger, whatever backend is measured.
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
      : plan_(p), records_(o.out, o.json), json_(o.json) {
    for (const experiment* e : p.experiments) {
      jobs_.push_back(jobs_of(p, *e));
      total_ += measurements_in(jobs_.back());
    }
  }

  int run() {
    if (!json_) print_heading(plan_);
    measurement_counter counter(total_);
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const experiment& e = *plan_.experiments[i];
      if (subjects_of(e, plan_.allocators).empty()) continue;
      records_.experiment(experiment_record(e, plan_.gpu()));
      const std::size_t first = points_.size();
      if (e.from_ledger())
        for (const bench_point& p : points_of_ledger(e, subjects_of(e, plan_.allocators))) add(p);
      for (const bench_job_batch& batch : jobs_[i]) measure(e, batch, counter);
      if (json_) continue;
      counter.clear();
      fmt::print("\n{}", experiment_text(e, in_order(first), table_width(), plan_.gpu()));
      std::fflush(stdout);
    }
    counter.clear();
    return finish();
  }

 private:
  void measure(const experiment& e, const bench_job_batch& batch, measurement_counter& counter) {
    std::vector<bench_request> requests;
    for (const bench_job& job : batch) requests.push_back(job.request);
    const auto what = [&](std::size_t job) {
      return fmt::format("{}, {}", e.id, batch[std::min(job, batch.size() - 1)].subject.series);
    };
    counter.show(what(0));
    measure_in_children(requests,
                        [&](std::size_t job, const bench_measurement& m, const bench_result& r) {
                          for (const bench_point& p : points_of(e, batch[job].subject, m, r))
                            add(p);
                          counter.next(what(job));
                        });
  }

  /// Returns the points from index `first` on, in the order in which the user named the allocators.
  std::vector<bench_point> in_order(std::size_t first) const {
    std::vector<bench_point> these(points_.begin() + static_cast<std::ptrdiff_t>(first),
                                   points_.end());
    const auto position = [&](const bench_point& p) {
      return std::find(plan_.allocators.begin(), plan_.allocators.end(), p.allocator);
    };
    std::stable_sort(these.begin(), these.end(),
                     [&](const auto& a, const auto& b) { return position(a) < position(b); });
    return these;
  }

  void add(const bench_point& p) {
    points_.push_back(p);
    records_.point(point_record(p, where_of(*p.of, plan_), plan_.command(*p.of, p.allocator)));
  }

  int finish() {
    const std::vector<bench_claim> claims = claims_of(points_);
    for (const bench_claim& c : claims) records_.claim(claim_record(c, plan_.where));
    const bool ok = std::all_of(points_.begin(), points_.end(),
                                [](const bench_point& p) { return p.result.sound(); });
    if (json_) {
      records_.print(ok);
    } else {
      fmt::print("\n{}", check_summary_text(points_));
      if (!claims.empty())
        fmt::print("\nClaims of the papers, and what was measured here:\n\n{}",
                   claims_text(claims));
    }
    return ok ? exit_success : exit_check_failed;
  }

  const bench_plan& plan_;
  record_writer records_;
  bool json_;
  std::vector<std::vector<bench_job_batch>> jobs_;
  std::size_t total_ = 0;
  std::vector<bench_point> points_;
};

}  // namespace

int measure(const bench_options& options, const bench_plan& plan) {
  return experiment_run(options, plan).run();
}

}  // namespace quarry::tool
