// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Finds a scene by name: a generated scene, or a file whose extension selects the reader.

#include "apps/scene/generated.hpp"
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
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension != ".obj" && extension != ".ply")
    throw scene_error(file.string() + ": not a generated scene, and not a .obj or .ply file");
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file))
    throw scene_error(file.string() + ": cannot be read");
  scene s = extension == ".obj" ? read_obj(in, file.string()) : read_ply(in, file.string());
  s.name = file.stem().string();
  return s;
}

inline bool is_generated(const std::string& name) {
  return std::any_of(std::begin(generated_scenes), std::end(generated_scenes),
                     [&](const generated_scene& m) { return m.name == name; });
}

/// `triangles` is the size of a generated scene. Throws scene_error.
inline scene find_scene(const std::string& name, std::uint32_t triangles) {
  for (const generated_scene& m : generated_scenes) {
    if (m.name != name) continue;
    scene s = m.make(triangles);
    check_scene(s);
    return s;
  }
  return load_scene(name);
}

}  // namespace quarry::apps
