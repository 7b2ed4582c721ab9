// SPDX-License-Identifier: Apache-2.0
#include "apps/scene/file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace scene_test {
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
/// Returns the message of the scene_error that a reader throws; empty if it accepts the text.
template <class Read>
std::string message_of(Read read, const std::string& text) {
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

TEST(Obj, TriangulatesPolygonsAndResolvesNegativeIndices) {
  const scene s = obj(square + "f -4/1/1 -3/2/1 -2/3/1 -1/4/1\n");
  ASSERT_EQ(s.size(), 2u);
  expect_corners(s, 1, 0, 2, 3);
}

TEST(Obj, ReadsContinuationLinesAndCarriageReturns) {
  const scene s = obj("v 0 0 0\r\nv 1 0 \\\r\n 0\r\n\tv\t1 1 0  \r\nf 1 2 \\\n3\r\n");
  ASSERT_EQ(s.points.size(), 3u);
  EXPECT_EQ(s.size(), 1u);
}

TEST(Obj, ReadsEveryFormOfANumberAndAByteOrderMark) {
  const scene s = obj("\xef\xbb\xbfv 1e-50 +1 -1e-400\nv +.5 1. 1E+2\nv 1 0 0\nf 1 2 3\n");
  ASSERT_EQ(s.points.size(), 3u);
  EXPECT_EQ(s.points[0].x, 0.0f);
  EXPECT_EQ(s.points[0].y, 1.0f);
  EXPECT_EQ(s.points[0].z, 0.0f);
  EXPECT_EQ(s.points[1].x, 0.5f);
  EXPECT_EQ(s.points[1].z, 100.0f);
  for (const char* bad : {"+-1", "++1", "1e400", "1e39", "1e", "+", "0x10", "1,5"})
    EXPECT_EQ(message_of(obj, std::string("v 0 0 ") + bad + "\n"),
              "a.obj:1: '" + std::string(bad) + "' is not a number");
}

TEST(Obj, RejectsCoordinatesWhoseAreasOverflow) {
  EXPECT_EQ(message_of(obj, "v 1e38 0 0\nv 0 1e38 0\nv 0 0 1\nf 1 2 3\n"),
            "a.obj: point 1 has a coordinate that is not between -1e15 and 1e15");
}

TEST(Obj, ReportsErrorsWithTheirLine) {
  EXPECT_EQ(message_of(obj, square + "f 1 2 5\n"),
            "a.obj:5: point index 5 is out of range; the file has 4 points before this line");
  EXPECT_EQ(message_of(obj, square + "f 1 2 0\n"),
            "a.obj:5: point index 0 is out of range; the file has 4 points before this line");
  EXPECT_EQ(message_of(obj, square + "f 1 2 -5\n"),
            "a.obj:5: point index -5 is out of range; the file has 4 points before this line");
  EXPECT_EQ(message_of(obj, square + "f 1 2\n"), "a.obj:5: a face needs at least three corners");
  EXPECT_EQ(message_of(obj, square + "\nf 1 2 x/3\n"), "a.obj:6: 'x/3' is not a point index");
  EXPECT_EQ(message_of(obj, "v 0 0\n"), "a.obj:1: a point needs three coordinates");
  EXPECT_EQ(message_of(obj, "\nv 0 zero 0\n"), "a.obj:2: 'zero' is not a number");
  EXPECT_EQ(message_of(obj, "v 0 0 1e99\n"), "a.obj:1: '1e99' is not a number");
  EXPECT_EQ(message_of(obj, square), "a.obj: no triangles");
  EXPECT_EQ(message_of(obj, "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"),
            "a.obj: point 1 has a coordinate that is not between -1e15 and 1e15");
}

std::string header(const std::string& form, int points = 4, int faces = 1) {
  return "ply\nformat " + form + " 1.0\ncomment test data\nelement vertex " +
         std::to_string(points) +
         "\nproperty uchar red\nproperty float x\nproperty float32 y\nproperty float z\nelement "
         "face " +
         std::to_string(faces) + "\nproperty list uchar int vertex_indices\nend_header\n";
}

TEST(Ply, ReadsAscii) {
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
std::string binary_square(bool big) {
  std::string text = header(big ? "binary_big_endian" : "binary_little_endian");
  for (const scene_point p : {scene_point{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, -0.25f}}) {
    put<std::uint8_t>(text, 255, big);
    put(text, p.x, big), put(text, p.y, big), put(text, p.z, big);
  }
  put<std::uint8_t>(text, 4, big);
  for (const std::int32_t corner : {0, 1, 2, 3}) put(text, corner, big);
  return text;
}

TEST(Ply, ReadsBinaryInEitherByteOrder) {
  for (const bool big : {false, true}) {
    const scene s = ply(binary_square(big));
    ASSERT_EQ(s.points.size(), 4u);
    EXPECT_EQ(s.points[2].y, 1.0f);
    EXPECT_EQ(s.points[3].z, -0.25f);
    ASSERT_EQ(s.size(), 2u);
    expect_corners(s, 1, 0, 2, 3);
  }
}

TEST(Ply, IgnoresUnknownElementsAndProperties) {
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

TEST(Ply, ReportsErrorsWithTheirLineOrElement) {
  EXPECT_EQ(message_of(ply, "plain\n"), "a.ply:1: the first line of a PLY file must be 'ply'");
  EXPECT_EQ(message_of(ply, ""), "a.ply:1: unexpected end of file");
  EXPECT_EQ(message_of(ply, "ply\nformat binary 1.0\n"),
            "a.ply:2: format 'binary' is not ascii, binary_little_endian or binary_big_endian");
  EXPECT_EQ(message_of(ply, "ply\nend_header\n"), "a.ply:2: the header has no format");
  EXPECT_EQ(message_of(ply, "ply\nformat ascii 1.0\nelement vertex many\n"),
            "a.ply:3: expected 'element NAME COUNT'");
  EXPECT_EQ(message_of(ply, "ply\nproperty float x\n"),
            "a.ply:2: property before the first element");
  EXPECT_EQ(message_of(ply, "ply\nelement vertex 1\nproperty real x\n"),
            "a.ply:3: 'real' is not a PLY type");
  EXPECT_EQ(message_of(ply, "ply\nelement face 1\nproperty list float int vertex_index\n"),
            "a.ply:3: the length of a list must have an integer type");
  EXPECT_EQ(message_of(ply, "ply\nformat ascii 1.0\nvertices 3\n"),
            "a.ply:3: 'vertices' is not a keyword of a PLY header");
  EXPECT_EQ(
      message_of(ply, "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n"),
      "a.ply: element vertex lacks one of the properties x y z");
  const std::string points = "0 0 0 0\n0 1 0 0\n0 1 1 0\n0 0 1 0\n";
  EXPECT_EQ(message_of(ply, header("ascii") + "0 0 0\n"), "a.ply:12: the line has too few numbers");
  EXPECT_EQ(message_of(ply, header("ascii") + points + "3 0 1 4\n"),
            "a.ply:16: point index 4 is out of range; the file has 4 points, numbered from 0");
  EXPECT_EQ(message_of(ply, header("ascii") + points + "3 0 1 -1\n"),
            "a.ply:16: -1.000000 is not a point index");
  EXPECT_EQ(message_of(ply, header("ascii") + points + "2 0 1\n"),
            "a.ply:16: a face needs at least three corners");
  EXPECT_EQ(message_of(ply, header("ascii") + points), "a.ply:16: unexpected end of file");
  EXPECT_EQ(message_of(ply, header("ascii") + "0 0 zero 0\n"), "a.ply:12: 'zero' is not a number");
  const std::string whole = binary_square(false);
  EXPECT_EQ(message_of(ply, whole.substr(0, whole.size() - 1)),
            "a.ply: face 1 of 1: unexpected end of file");
  EXPECT_EQ(message_of(ply, whole.substr(0, whole.size() - 20)),
            "a.ply: vertex 4 of 4: unexpected end of file");
}

TEST(Ply, ReadsFacesBeforePoints) {
  const std::string start =
      "ply\nformat ascii 1.0\nelement face 1\nproperty list uchar int vertex_indices\n"
      "element vertex 3\nproperty float x\nproperty float y\nproperty float z\nend_header\n";
  expect_corners(ply(start + "3 2 1 0\n0 0 0\n1 0 0\n0 1 0\n"), 0, 2, 1, 0);
  EXPECT_EQ(message_of(ply, start + "3 2 1 3\n0 0 0\n1 0 0\n0 1 0\n"),
            "a.ply: triangle 1 references point 4 of 3");
}

TEST(Ply, RejectsWhatTheHeaderDoesNotDescribe) {
  const auto header_with = [](const std::string& element) {
    return "ply\nformat ascii 1.0\n" + element + "end_header\n";
  };
  const std::string points = "0 0 0 0\n0 1 0 0\n0 1 1 0\n0 0 1 0\n";
  EXPECT_EQ(message_of(ply, header("ascii") + points + "4 0 1 2 3\n5\n"),
            "a.ply:17: text follows the last element");
  EXPECT_EQ(message_of(ply, header("ascii") + points + "4 0 1 2 3\n \r\n\n"), "");
  EXPECT_EQ(message_of(ply, header("ascii") + points + "4 0 1 2 3 4\n"),
            "a.ply:16: the line has too many numbers");
  EXPECT_EQ(message_of(ply, header("ascii") + points + "3.9 0 1 2\n"),
            "a.ply:16: '3.9' is not a number of the property's type");
  EXPECT_EQ(message_of(ply, header("ascii") + "256 0 0 0\n"),
            "a.ply:12: '256' is not a number of the property's type");
  EXPECT_EQ(message_of(ply, binary_square(false) + "x"), "a.ply: bytes follow the last element");
  EXPECT_EQ(message_of(ply, "ply\nformat ascii 9.7\n"),
            "a.ply:2: version '9.7' of the format is not 1.0");
  for (const char* count : {"-1", "1.5", "18446744073709551616", "3 4", ""})
    EXPECT_EQ(message_of(ply, header_with("element vertex " + std::string(count) + "\n")),
              "a.ply:3: expected 'element NAME COUNT'")
        << count;
  EXPECT_EQ(message_of(ply, header_with("element vertex 1\nproperty list uchar float x\nproperty "
                                        "float y\nproperty float z\n")),
            "a.ply: property x of element vertex is a list");
  EXPECT_EQ(message_of(ply, header_with("element face 1\nproperty int vertex_index\n")),
            "a.ply: property vertex_index of element face is not a list");
  EXPECT_EQ(message_of(ply,
                       "ply\nformat binary_little_endian 1.0\nelement x 18446744073709551615\n"
                       "end_header\n"),
            "a.ply:4: element x has no properties, but 18446744073709551615 entries");
}

TEST(SceneFile, SelectsTheReaderByExtension) {
  const auto folder = std::filesystem::temp_directory_path() / "quarry_scene_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "Flat.OBJ") << square << "f 1 2 3 4\n";
  std::ofstream(folder / "bytes.ply", std::ios::binary) << binary_square(true);
  EXPECT_EQ(load_scene(folder / "Flat.OBJ").size(), 2u);
  EXPECT_EQ(load_scene(folder / "Flat.OBJ").name, "Flat");
  EXPECT_EQ(find_scene((folder / "bytes.ply").string(), 0).size(), 2u);
  std::filesystem::remove_all(folder);
  const auto load = [](const std::string& name) { load_scene(name); };
  EXPECT_EQ(message_of(load, "mesh.stl"),
            "mesh.stl: not a generated scene, and not a .obj or .ply file");
  EXPECT_EQ(message_of(load, "no/such.obj"), "no/such.obj: cannot be read");
}

TEST(GeneratedScenes, HaveTheRequestedNumberOfTriangles) {
  for (const generated_scene& m : generated_scenes)
    for (const std::uint32_t n : {1u, 2u, 3u, 17u, 1000u, 12'345u}) {
      const scene s = m.make(n);
      EXPECT_EQ(s.size(), n) << m.name;
      EXPECT_NO_THROW(check_scene(s)) << m.name;
    }
}

TEST(GeneratedScenes, AreReproducible) {
  for (const generated_scene& m : generated_scenes) {
    const scene a = m.make(500), b = m.make(500);
    ASSERT_EQ(a.points.size(), b.points.size());
    for (std::size_t i = 0; i < a.points.size(); ++i)
      for (unsigned axis = 0; axis < 3; ++axis) ASSERT_EQ(a.points[i][axis], b.points[i][axis]);
  }
}

TEST(GeneratedScenes, RejectMoreTrianglesThanATreeCanHold) {
  EXPECT_NO_THROW(find_scene("clustered", 100));
  EXPECT_THROW(find_scene("tessellated", scene::max_triangles + 1), scene_error);
}

}  // namespace
}  // namespace scene_test
