// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which allocator for which work.
///
/// A curve's slowdown is the geometric mean, over the x of a view, of its value divided by the best curve's; the
/// best is the one that makes all slowdowns 1 or more. Compared is at the x that at least half of the curves
/// have, and a curve that lacks one of them is told apart ("in part").
///
/// A curve with a point that was lost, corrupt or misaligned is not sound and takes no part. A point with
/// refused requests did less work than the others: where less is better, it counts only if all were
/// refused some. A measure of which less is better and somebody has nothing is not compared.

#include "report/report.hpp"

#include <string>
#include <vector>

namespace quarry::tool::report {

/// Who is compared: all, or those that free single blocks and never hand out memory in use. Of allocators
/// that this program does not know the latter is assumed.
enum class field_of : std::uint8_t { everyone, general };

struct standing {
  std::string series, allocator;
  double slowdown = 1;
  std::size_t at = 0;  // number of x compared
};

struct ranking {
  std::size_t experiment = 0, figure = 0, view = 0;  // indices into the document
  bool main = true;                                  // the first measure of its figure
  std::size_t of = 0;                                // number of x that make the work
  std::vector<standing> whole, in_part;              // the best first
  std::vector<std::string> unsound;                  // series
};

ranking rank(const view& v, field_of who);

/// Of every view for which one way is better and somebody can be compared.
std::vector<ranking> rank_all(const document& d, field_of who);

/// An allocator over all experiments on a machine, by their main measure.
struct overall {
  std::string allocator;
  double slowdown = 1;  // geometric mean
  std::size_t experiments = 0, best = 0, unsound = 0;
};
struct summary {
  std::size_t backend = 0;
  std::size_t experiments = 0;
  std::vector<overall> often, seldom;  // in at least half of the experiments, in fewer
};
std::vector<summary> summarise(const document& d, const std::vector<ranking>& rankings);

/// "1.27", "–" if it took part in nothing.
std::string mean_text(const overall& o);

/// "equal", "+12 %", "3.4 ×", with spaces that do not break.
std::string slowdown_text(double slowdown);

}  // namespace quarry::tool::report
