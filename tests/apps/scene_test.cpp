// SPDX-License-Identifier: Apache-2.0
#include "apps/scene/file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

using namespace quarry::apps;

scene obj(const std::string& text) {
  std::istringstream in(text);
  return read_obj(in, "a.obj");
}
scene ply(const std::string& text) {
  std::istringstream in(text);
  return read_ply(in, "a.ply");
}
/// What the reader has to say.
template <class Read>
std::string complaint(Read read, const std::string& text) {
  try {
    read(text);
  } catch (const scene_error& e) {
    return e.what();
  }
  return {};
}
void expect_corners(const scene& s, std::size_t triangle, std::uint32_t a, std::uint32_t b,
                    std::uint32_t c) {
  ASSERT_LT(triangle, s.triangles.size());
  EXPECT_EQ(s.triangles[triangle].corner[0], a);
  EXPECT_EQ(s.triangles[triangle].corner[1], b);
  EXPECT_EQ(s.triangles[triangle].corner[2], c);
}

const std::string square = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 -2.5e-1\n";

TEST(Obj, ReadsPointsAndFaces) {
  const scene s = obj("# a comment\n" + square + "vn 0 0 1\ng part\nf 1 2 3\nf 1//1 3//1 4//1\n");
  ASSERT_EQ(s.points.size(), 4u);
  ASSERT_EQ(s.size(), 2u);
  EXPECT_EQ(s.points[3].z, -0.25f);
  expect_corners(s, 0, 0, 1, 2);
  expect_corners(s, 1, 0, 2, 3);
}

TEST(Obj, CutsPolygonsAndCountsBackwards) {
  const scene s = obj(square + "f -4/1/1 -3/2/1 -2/3/1 -1/4/1\n");
  ASSERT_EQ(s.size(), 2u);
  expect_corners(s, 1, 0, 2, 3);
}

TEST(Obj, ReadsLinesThatGoOnAndLinesOfOtherSystems) {
  const scene s = obj("v 0 0 0\r\nv 1 0 \\\r\n 0\r\n\tv\t1 1 0  \r\nf 1 2 \\\n3\r\n");
  ASSERT_EQ(s.points.size(), 3u);
  EXPECT_EQ(s.size(), 1u);
}

TEST(Obj, SaysInWhichLineWhatIsWrong) {
  EXPECT_EQ(complaint(obj, square + "f 1 2 5\n"), "a.obj:5: a face with point 5, of 4 so far");
  EXPECT_EQ(complaint(obj, square + "f 1 2 0\n"), "a.obj:5: a face with point 0, of 4 so far");
  EXPECT_EQ(complaint(obj, square + "f 1 2 -5\n"), "a.obj:5: a face with point -5, of 4 so far");
  EXPECT_EQ(complaint(obj, square + "f 1 2\n"), "a.obj:5: a face has three corners at least");
  EXPECT_EQ(complaint(obj, square + "\nf 1 2 x/3\n"),
            "a.obj:6: 'x/3' is not the number of a point");
  EXPECT_EQ(complaint(obj, "v 0 0\n"), "a.obj:1: a point has three coordinates");
  EXPECT_EQ(complaint(obj, "\nv 0 zero 0\n"), "a.obj:2: 'zero' is not a number");
  EXPECT_EQ(complaint(obj, "v 0 0 1e99\n"), "a.obj:1: '1e99' is not a number");
  EXPECT_EQ(complaint(obj, square), "a.obj: no triangles");
  EXPECT_EQ(complaint(obj, "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"),
            "a.obj: point 1 lies nowhere");
}

std::string header(const std::string& form, int points = 4, int faces = 1) {
  return "ply\nformat " + form + " 1.0\ncomment made for a test\nelement vertex " +
         std::to_string(points) +
         "\nproperty uchar red\nproperty float x\nproperty float32 y\nproperty float z\nelement "
         "face " +
         std::to_string(faces) + "\nproperty list uchar int vertex_indices\nend_header\n";
}

TEST(Ply, ReadsText) {
  const scene s = ply(header("ascii", 4, 2) +
                      "255 0 0 0\n0 1 0 0\n0 1 1 0\n0 0 1 -0.25\n\n4 0 1 2 3\n3 3 2 1\n");
  ASSERT_EQ(s.points.size(), 4u);
  ASSERT_EQ(s.size(), 3u);
  EXPECT_EQ(s.points[3].z, -0.25f);
  expect_corners(s, 1, 0, 2, 3);
  expect_corners(s, 2, 3, 2, 1);
}

template <class T>
void put(std::string& to, T value, bool big) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  if (big != (std::endian::native == std::endian::big)) std::reverse(bytes, bytes + sizeof value);
  to.append(bytes, sizeof value);
}
std::string square_in_bytes(bool big) {
  std::string text = header(big ? "binary_big_endian" : "binary_little_endian");
  for (const scene_point p : {scene_point{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, -0.25f}}) {
    put<std::uint8_t>(text, 255, big);
    put(text, p.x, big), put(text, p.y, big), put(text, p.z, big);
  }
  put<std::uint8_t>(text, 4, big);
  for (const std::int32_t corner : {0, 1, 2, 3}) put(text, corner, big);
  return text;
}

TEST(Ply, ReadsBytesInEitherOrder) {
  for (const bool big : {false, true}) {
    const scene s = ply(square_in_bytes(big));
    ASSERT_EQ(s.points.size(), 4u);
    EXPECT_EQ(s.points[2].y, 1.0f);
    EXPECT_EQ(s.points[3].z, -0.25f);
    ASSERT_EQ(s.size(), 2u);
    expect_corners(s, 1, 0, 2, 3);
  }
}

TEST(Ply, PassesOverWhatItDoesNotKnow) {
  const scene s = ply(
      "ply\nformat ascii 1.0\nobj_info x\nelement vertex 3\nproperty double z\nproperty double y\n"
      "property double x\nproperty list uint8 int16 seen_by\nelement edge 1\nproperty int "
      "a\nproperty list "
      "uchar float weights\nelement face 1\nproperty short flags\nproperty list ushort uint "
      "vertex_index\nend_header\n"
      "1 2 3 2 7 8\n4 5 6 0\n7 8 9 1 7\n4 2 0.5 0.5\n9 3 2 1 0\n");
  EXPECT_EQ(s.points[0].x, 3.0f);
  EXPECT_EQ(s.points[2].z, 7.0f);
  expect_corners(s, 0, 2, 1, 0);
}

TEST(Ply, SaysWhereWhatIsWrong) {
  EXPECT_EQ(complaint(ply, "plain\n"), "a.ply:1: a PLY file begins with the line 'ply'");
  EXPECT_EQ(complaint(ply, ""), "a.ply:1: the file ends here");
  EXPECT_EQ(complaint(ply, "ply\nformat binary 1.0\n"),
            "a.ply:2: format 'binary' is not ascii, binary_little_endian or binary_big_endian");
  EXPECT_EQ(complaint(ply, "ply\nend_header\n"), "a.ply:2: the header ends without a format");
  EXPECT_EQ(complaint(ply, "ply\nformat ascii 1.0\nelement vertex many\n"),
            "a.ply:3: expected 'element NAME COUNT'");
  EXPECT_EQ(complaint(ply, "ply\nproperty float x\n"),
            "a.ply:2: a property before the first element");
  EXPECT_EQ(complaint(ply, "ply\nelement vertex 1\nproperty real x\n"),
            "a.ply:3: 'real' is not a type of PLY");
  EXPECT_EQ(complaint(ply, "ply\nelement face 1\nproperty list float int vertex_index\n"),
            "a.ply:3: the length of a list is a whole number");
  EXPECT_EQ(complaint(ply, "ply\nformat ascii 1.0\nvertices 3\n"),
            "a.ply:3: 'vertices' is no word of a PLY header");
  EXPECT_EQ(
      complaint(ply, "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n"),
      "a.ply: element vertex lacks a property of x y z");
  const std::string points = "0 0 0 0\n0 1 0 0\n0 1 1 0\n0 0 1 0\n";
  EXPECT_EQ(complaint(ply, header("ascii") + "0 0 0\n"),
            "a.ply:12: the line ends before its last number");
  EXPECT_EQ(complaint(ply, header("ascii") + points + "3 0 1 4\n"),
            "a.ply:16: a face with point 4, of 4 counted from 0");
  EXPECT_EQ(complaint(ply, header("ascii") + points + "3 0 1 -1\n"),
            "a.ply:16: a face with the point -1.000000");
  EXPECT_EQ(complaint(ply, header("ascii") + points + "2 0 1\n"),
            "a.ply:16: a face has three corners at least");
  EXPECT_EQ(complaint(ply, header("ascii") + points), "a.ply:16: the file ends here");
  EXPECT_EQ(complaint(ply, header("ascii") + "0 0 zero 0\n"), "a.ply:12: 'zero' is not a number");
  const std::string whole = square_in_bytes(false);
  EXPECT_EQ(complaint(ply, whole.substr(0, whole.size() - 1)),
            "a.ply: face 1 of 1: the file ends here");
  EXPECT_EQ(complaint(ply, whole.substr(0, whole.size() - 20)),
            "a.ply: vertex 4 of 4: the file ends here");
}

TEST(SceneFile, GoesByItsEnding) {
  const auto folder = std::filesystem::temp_directory_path() / "quarry_scene_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "Flat.OBJ") << square << "f 1 2 3 4\n";
  std::ofstream(folder / "bytes.ply", std::ios::binary) << square_in_bytes(true);
  EXPECT_EQ(load_scene(folder / "Flat.OBJ").size(), 2u);
  EXPECT_EQ(load_scene(folder / "Flat.OBJ").name, "Flat");
  EXPECT_EQ(find_scene((folder / "bytes.ply").string(), 0).size(), 2u);
  std::filesystem::remove_all(folder);
  const auto load = [](const std::string& name) { load_scene(name); };
  EXPECT_EQ(complaint(load, "mesh.stl"), "mesh.stl: a scene is a file .obj or .ply");
  EXPECT_EQ(complaint(load, "no/such.obj"), "no/such.obj: can not be read");
}

TEST(MadeScenes, HaveAsManyTrianglesAsAskedFor) {
  for (const made_scene& m : made_scenes)
    for (const std::uint32_t n : {1u, 2u, 3u, 17u, 1000u, 12'345u}) {
      const scene s = m.make(n);
      EXPECT_EQ(s.size(), n) << m.name;
      EXPECT_NO_THROW(check_scene(s)) << m.name;
    }
}

TEST(MadeScenes, AreTheSameEachTime) {
  for (const made_scene& m : made_scenes) {
    const scene a = m.make(500), b = m.make(500);
    ASSERT_EQ(a.points.size(), b.points.size());
    for (std::size_t i = 0; i < a.points.size(); ++i)
      for (unsigned axis = 0; axis < 3; ++axis) ASSERT_EQ(a.points[i][axis], b.points[i][axis]);
  }
}

TEST(MadeScenes, AreNotLargerThanTreesCanBe) {
  EXPECT_NO_THROW(find_scene("clustered", 100));
  EXPECT_THROW(find_scene("tessellated", scene::most_triangles + 1), scene_error);
}

}  // namespace
