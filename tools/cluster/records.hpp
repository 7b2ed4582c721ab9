// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The records of `quarry cluster`, in the format that `quarry bench` writes and `quarry report`
/// reads (docs/report.md).
///
///   an application   one experiment; per run three data points at the same x, which the report
///                    stacks to one bar: computation, worker and scheduler communication
///   list-exchange    with MPI also the ratios to access node by node; from 16 workers the claim
///   scaling          one experiment; per tree and number of workers one data point

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace quarry::tool {

using cluster_json = nlohmann::ordered_json;

/// Where a program ran: in the simulated network, or as MPI processes on this host.
enum class cluster_network { simulated, mpi };

/// The fields that tell where, when and from which commit a data point was measured.
cluster_json network_fields(cluster_network network);

/// Returns the experiment of `run["app"]` and the three data points of the run; with ratios to
/// access node by node also their experiment, points and claim. `run` holds the fields of
/// summarise_run() (engine.hpp) and may hold more; all of them go into each of the three points.
std::vector<cluster_json> run_records(const cluster_json& run, cluster_network network,
                                      const std::string& command);

/// Returns the experiment of `quarry cluster scaling`.
cluster_json scaling_experiment();

/// Prints the records to standard output (`print`) and appends them to the file `out` (if named).
void write_records(const std::vector<cluster_json>& records, bool print, const std::string& out);

}  // namespace quarry::tool
