// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The contents of docs/costs.json at build time.

#include <optional>
#include <string>
#include <string_view>

namespace quarry::tool {

/// Returns the registers per thread of a kernel with one malloc and one free on sm_90, if recorded.
std::optional<unsigned> registers_of(std::string_view allocator);

/// Returns the version of the nvcc that compiled these kernels; empty if there are no records.
std::string register_compiler();

}  // namespace quarry::tool
