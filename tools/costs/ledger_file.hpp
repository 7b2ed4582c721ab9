// SPDX-License-Identifier: Apache-2.0
#pragma once
/// docs/costs.json, as it was when this program was built.

#include <optional>
#include <string>
#include <string_view>

namespace quarry::tool {

/// Registers of a kernel with one malloc and one free on sm_90; nothing where nobody counted yet.
std::optional<unsigned> registers_of(std::string_view allocator);

/// The compiler that counted them; empty if none did.
std::string register_compiler();

}  // namespace quarry::tool
