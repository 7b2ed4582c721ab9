// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: the reader of PLY files.
#include "apps/scene/ply.hpp"
#include "fuzz/fuzz.hpp"

#include <sstream>

namespace quarry::fuzz::ply {
namespace {

void run(input bytes) {
  std::istringstream in{std::string(text_of(bytes))};
  try {
    apps::check_scene(apps::read_ply(in, "fuzz"));
  } catch (const apps::scene_error&) {
  }
}

std::vector<std::string> seeds() { return {}; }

}  // namespace
}  // namespace quarry::fuzz::ply

QUARRY_FUZZ_TARGET(ply, quarry::fuzz::ply::run, quarry::fuzz::ply::seeds, 5000);
