// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Compares the options of all ranks before a cluster starts. Ranks with different options would
/// build different trees of schedulers, or run different programs, and wait for each other for
/// ever.
///
///   options_as_text   all options as pairs of name and value: the arguments of the program, then
///                     the members of run_options
///   differs_at        the first option that two ranks do not agree on
///   options_are_equal compares every rank with rank 0

#include <quarry/cluster/detail/mpi.hpp>
#include <quarry/cluster/run.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quarry::cluster::detail {

using named_values = std::vector<std::pair<std::string, std::string>>;

named_values options_as_text(const run_options& options);

struct option_difference {
  std::string name;
  std::string first, second;  // the values; empty: not given
};
/// Returns the first difference of two lists; nothing if they are equal.
std::optional<option_difference> differs_at(const named_values& first, const named_values& second);

/// Collective. Returns, on all ranks, whether the options of all ranks are equal. Otherwise the
/// lowest rank that differs from rank 0 prints the difference on stderr.
/// Cost: a broadcast of about a KiB and a reduction.
bool options_are_equal(MPI_Comm world, const run_options& options);

}  // namespace quarry::cluster::detail
