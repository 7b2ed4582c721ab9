// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: the reader of OBJ files.
#include "apps/scene/obj.hpp"
#include "fuzz/fuzz.hpp"

#include <sstream>

namespace quarry::fuzz::obj {
namespace {

void run(input bytes) {
  std::istringstream in{std::string(text_of(bytes))};
  try {
    apps::check_scene(apps::read_obj(in, "fuzz"));
  } catch (const apps::scene_error&) {
  }
}

std::vector<std::string> seeds() { return {}; }

}  // namespace
}  // namespace quarry::fuzz::obj

QUARRY_FUZZ_TARGET(obj, quarry::fuzz::obj::run, quarry::fuzz::obj::seeds, 5000);
