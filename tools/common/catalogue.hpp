// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The allocators by name: lookup for the command line, and texts for tables.

#include "common/parse.hpp"

#include <quarry/core/allocator.hpp>
#include <quarry/heap/named.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// Returns the names of all allocators, in the order of all_allocators.
inline std::vector<std::string_view> allocator_names() {
  std::vector<std::string_view> names;
  for_each_allocator([&](auto entry) { names.push_back(entry.name); });
  return names;
}

/// Returns the allocators that `typed` means: a name in upper or lower case, a C++ type, or "all".
/// Throws input_error with a suggestion if there is no such allocator.
std::vector<std::string_view> find_allocators(std::string_view typed);

/// Calls visit(entry) for the allocator with this name.
template <class Visit>
void visit_allocator(std::string_view name, Visit&& visit) {
  for_each_allocator([&](auto entry) {
    if (entry.name == name) visit(entry);
  });
}

/// Returns what the allocator can free: "one, all", "one", "all" or "nothing".
std::string frees_text(const abilities& can);
/// Returns what happens to freed memory: "reused", "overwritten" or "used once".
std::string memory_text(const abilities& can);

}  // namespace quarry::tool
