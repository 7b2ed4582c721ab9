// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Regions across processes: worker, region handles, run() over MPI, and the simulation.
/// quarry::cluster has what runs over MPI; quarry::cluster_core the rest.

#include <quarry/core/config.hpp>  // first: it reports compilers without C++20

#include <quarry/cluster/region_handle.hpp>
#include <quarry/cluster/run.hpp>
#include <quarry/cluster/simulation.hpp>
#include <quarry/cluster/worker.hpp>
