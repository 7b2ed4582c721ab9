// SPDX-License-Identifier: Apache-2.0
/// The explorer, instantiated for every allocator of the library.

#include "common/catalogue.hpp"
#include "explore/run.hpp"

#include <quarry/check/explore_allocator.hpp>

namespace quarry::tool {

explore_function explorer_of(std::string_view allocator) {
  explore_function explore;
  visit_allocator(allocator, [&](auto entry) {
    explore = [](exploration_options options) {
      using allocator_type = typename decltype(entry)::type;
      options.paint_hidden = options.paint_hidden || allocator_type::can.overwrites;
      return allocator_explorer<allocator_type>(options).run();
    };
  });
  return explore;
}

replay_result replay_trial(std::string_view allocator, const trial& t, const trace::sink& write) {
  replay_result result;
  visit_allocator(allocator, [&](auto entry) {
    using allocator_type = typename decltype(entry)::type;
    exploration_options options;
    options.pool_bytes = t.pool_bytes;
    options.paint_hidden = allocator_type::can.overwrites;
    result = allocator_explorer<allocator_type>(options).replay(t, write);
  });
  return result;
}

}  // namespace quarry::tool
