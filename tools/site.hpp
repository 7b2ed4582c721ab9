// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Where figures are measured: the machine that was asked for, and its description in the record.

#include "bench.hpp"
#include "demo.hpp"

#include <cstdint>
#include <string>

namespace quarry::tool {

/// "cpu", "cuda", or "": a GPU if there is one. Throws input_error where it can not run.
demo_machine choose_machine(const std::string& wanted);

/// Of now, with the commit that this program was built from.
bench_environment describe(const demo_machine& machine);
/// Of what runs on plain threads and processes.
bench_environment describe_host();

/// "--heap 1T": more than the machine has is an input_error.
void check_heap(std::uint64_t size, const demo_machine& machine, const std::string& who = "--heap");

}  // namespace quarry::tool
