// SPDX-License-Identifier: Apache-2.0
#include "common/catalogue.hpp"

#include <fmt/format.h>

namespace quarry::tool {

std::vector<std::string_view> find_allocators(std::string_view typed) {
  std::vector<std::string_view> names = allocator_names();
  if (typed == "all") return names;
  if (const auto name = find_name(typed, names); !name.empty()) return {name};
  std::string_view found;
  for_each_allocator([&](auto entry) {
    if (typed == entry.cpp_name || fmt::format("quarry::{}", typed) == entry.cpp_name)
      found = entry.name;
  });
  if (!found.empty()) return {found};
  const std::string_view nearest = nearest_name(typed, names);
  throw input_error(fmt::format("no allocator '{}'{}; the allocators are {}, or all", typed,
                                nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                                fmt::join(names, ", ")));
}

std::string frees_text(const abilities& can) {
  if (can.frees_one && can.frees_all) return "one, all";
  if (can.frees_one) return "one";
  return can.frees_all ? "all" : "nothing";
}

std::string memory_text(const abilities& can) {
  if (can.overwrites) return "overwritten";
  return can.reuses ? "reused" : "used once";
}

}  // namespace quarry::tool
