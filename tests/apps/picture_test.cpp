// SPDX-License-Identifier: Apache-2.0
#include "apps/picture/picture.hpp"
#include "apps/delaunay/local_store.hpp"
#include "apps/delaunay/points.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace picture_test {
namespace {

using namespace quarry::apps;

std::size_t count(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

TEST(Picture, DrawsEveryEdgeOnce) {
  local_store store;
  mesh<local_store> m(store);
  m.make_square(1 << 16);
  for (const grid_point p : random_points(100, 16, 1)) m.add(p);
  std::ostringstream out;
  draw_mesh(out, canonical(store.all()), 1 << 16);
  const std::string svg = out.str();
  // 104 points: 202 triangles and four border edges.
  EXPECT_EQ(count(svg, 'M'), (3u * 202 + 4) / 2);
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_LT(svg.size(), 305u * 20 + 400);
}

TEST(Picture, DrawsEveryWorkerInItsOwnColour) {
  auto bodies = plummer_sphere(500, 1);
  for (body& b : bodies) b.owner = b.number % 4;
  std::ostringstream out;
  draw_bodies(out, bodies, 100);
  const std::string svg = out.str();
  EXPECT_EQ(count(svg, 'M'), 500u);
  for (const char* colour : {"hsl(0,", "hsl(90,", "hsl(180,", "hsl(270,"})
    EXPECT_NE(svg.find(colour), std::string::npos);
}

TEST(Picture, OmitsBodiesOutsideTheRadius) {
  std::vector<body> bodies(2);
  bodies[1].position = {3, 0, 0};
  std::ostringstream out;
  draw_bodies(out, bodies);
  EXPECT_EQ(count(out.str(), 'M'), 1u);
}

}  // namespace
}  // namespace picture_test
