// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The backend that the user asked for, and its description in the record.

#include "bench/request.hpp"
#include "common/backend_info.hpp"

#include <cstdint>
#include <string>

namespace quarry::tool {

/// Returns the backend with this name: "cpu", "cuda", or "" for a GPU if there is one, else the
/// CPU. Throws input_error if the backend cannot run on this host.
backend_info choose_backend(const std::string& wanted);

/// Describes the backend, with the current time and the commit that this program was built from.
bench_environment describe(const backend_info& backend);
/// Describes this host, for measurements on plain threads and processes.
bench_environment describe_host();

/// Throws input_error if a heap of `size` bytes exceeds the memory of the backend. `option` is the
/// option that the message names.
void check_heap(std::uint64_t size, const backend_info& backend,
                const std::string& option = "--heap");

}  // namespace quarry::tool
