// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A scene by its name: one that is made, or a file, whose ending says how to read it.

#include "apps/scene/made.hpp"
#include "apps/scene/obj.hpp"
#include "apps/scene/ply.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>

namespace quarry::apps {

/// Throws scene_error.
inline scene load_scene(const std::filesystem::path& file) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending != ".obj" && ending != ".ply")
    throw scene_error(file.string() + ": a scene is a file .obj or .ply");
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file))
    throw scene_error(file.string() + ": can not be read");
  scene s = ending == ".obj" ? read_obj(in, file.string()) : read_ply(in, file.string());
  s.name = file.stem().string();
  return s;
}

inline bool is_made(const std::string& name) {
  return std::any_of(std::begin(made_scenes), std::end(made_scenes),
                     [&](const made_scene& m) { return m.name == name; });
}

/// `triangles` is for those that are made. Throws scene_error.
inline scene find_scene(const std::string& name, std::uint32_t triangles) {
  for (const made_scene& m : made_scenes) {
    if (m.name != name) continue;
    scene s = m.make(triangles);
    check_scene(s);
    return s;
  }
  return load_scene(name);
}

}  // namespace quarry::apps
