// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The allocators as the command line sees them.

#include "common/parse.hpp"

#include <quarry/core/allocator.hpp>
#include <quarry/heap/named.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// The papers' names, in the order of the library.
inline std::vector<std::string_view> allocator_names() {
  std::vector<std::string_view> names;
  for_each_allocator([&](auto entry) { names.push_back(entry.name); });
  return names;
}

/// What `typed` means: a paper's name in any letter case, a C++ type, or "all". Throws input_error.
std::vector<std::string_view> find_allocators(std::string_view typed);

/// Calls visit(entry) for the allocator of this name.
template <class Visit>
void visit_allocator(std::string_view name, Visit&& visit) {
  for_each_allocator([&](auto entry) {
    if (entry.name == name) visit(entry);
  });
}

/// "one, all": what can be freed.
std::string frees_text(const abilities& can);
/// "reused", "overwritten", "used once": what becomes of memory.
std::string memory_text(const abilities& can);

}  // namespace quarry::tool
