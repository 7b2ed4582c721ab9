// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The allocators by the names of the papers: one list for the command line, the tests and the tables.

#include <quarry/pool/bump.hpp>
#include <quarry/pool/system_heap.hpp>
#include <quarry/pool/wrap.hpp>

#include <string_view>

namespace quarry {

/// An entry of the list: `type`, and what people call it.
template <class Allocator>
struct named_allocator {
  using type = Allocator;
  std::string_view name;      // as in the papers, and on the command line
  std::string_view cpp_name;  // the type
  std::string_view summary;
};

/// Calls visit(named_allocator<A>) for every allocator of the library.
template <class Visit>
constexpr void for_each_allocator(Visit&& visit) {
  visit(named_allocator<bump>{"AtomicMalloc", "quarry::bump", "one counter, no free"});
  visit(named_allocator<warp_bump>{"AtomicMalloc-warp", "quarry::warp_bump",
                                   "one counter, asked once a warp, no free"});
  visit(named_allocator<wrap>{"AWMalloc", "quarry::wrap", "a counter that wraps: overwrites old blocks"});
  visit(named_allocator<warp_wrap>{"AWMalloc-warp", "quarry::warp_wrap",
                                   "the same, asked once a warp"});
  visit(named_allocator<system_heap>{"CudaMalloc", "quarry::system_heap",
                                     "CUDA's device malloc; std::malloc on the CPU"});
}

}  // namespace quarry
