// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Where figures are measured: the machine that was asked for, and its description in the record.

#include "bench/bench.hpp"
#include "common/backend_info.hpp"

#include <cstdint>
#include <string>

namespace quarry::tool {

/// "cpu", "cuda", or "": a GPU if there is one. Throws input_error where it can not run.
backend_info choose_backend(const std::string& wanted);

/// Of now, with the commit that this program was built from.
bench_environment describe(const backend_info& backend);
/// Of what runs on plain threads and processes.
bench_environment describe_host();

/// "--heap 1T": more than the machine has is an input_error.
void check_heap(std::uint64_t size, const backend_info& backend, const std::string& who = "--heap");

}  // namespace quarry::tool
