// SPDX-License-Identifier: Apache-2.0
#include "apps/delaunay/check.hpp"
#include "apps/delaunay/local_store.hpp"
#include "apps/delaunay/points.hpp"

#include <gtest/gtest.h>

namespace mesh_test {
namespace {

using namespace quarry::apps;

constexpr std::int32_t far = 1 << max_grid_bits;

static_assert(orient({0, 0}, {far, 0}, {0, far}) == std::int64_t{far} * far);
static_assert(orient({0, 0}, {far, far}, {far - 1, far - 1}) == 0);
static_assert(orient({0, 0}, {far, far}, {far - 1, far}) > 0);
static_assert(in_circle({0, 0}, {far, 0}, {far, far}, {0, far}) == 0);
static_assert(in_circle({0, 0}, {far, 0}, {far, far}, {1, far - 1}) == 1);
static_assert(in_circle({1, 0}, {far, 1}, {far - 1, far}, {0, far}) == -1);
static_assert(circumcentre({0, 0}, {4, 0}, {4, 2}).x == 2);
static_assert(circumcentre({0, 0}, {4, 0}, {4, 2}).y == 1);

/// A sequential triangulation.
struct sequential_mesh {
  local_store store;
  std::size_t duplicates = 0;

  sequential_mesh(std::vector<grid_point> points, std::int32_t side, bool in_order = true) {
    mesh<local_store> m(store);
    m.make_square(side);
    if (in_order) order_for_insertion(points);
    for (const grid_point p : points) {
      const insertion done = m.add(p);
      EXPECT_NE(done, insertion::postponed);
      duplicates += done == insertion::duplicate;
    }
  }
};

TEST(Predicates, AreInvariantUnderCyclicPermutation) {
  const std::vector<grid_point> points = random_points(400, max_grid_bits, 7);
  for (std::size_t i = 0; i + 4 <= points.size(); i += 4) {
    grid_point a = points[i], b = points[i + 1], c = points[i + 2];
    const grid_point p = points[i + 3];
    if (orient(a, b, c) < 0) std::swap(b, c);
    EXPECT_EQ(orient(a, b, c), orient(b, c, a));
    EXPECT_EQ(orient(a, b, c), -orient(b, a, c));
    EXPECT_EQ(in_circle(a, b, c, p), in_circle(b, c, a, p));
    EXPECT_EQ(in_circle(a, b, c, a), 0);
  }
}

TEST(Predicates, ResolveOneGridStepOnTheLargestCircle) {
  // The circumcircle of the whole grid.
  EXPECT_EQ(in_circle({0, 0}, {far, 0}, {0, far}, {far, far}), 0);
  EXPECT_EQ(in_circle({0, 0}, {far, 0}, {0, far}, {far - 1, far}), 1);
}

TEST(Mesh, StartsAsASquareOfTwoTriangles) {
  sequential_mesh one({}, 16);
  EXPECT_EQ(check_mesh(one.store.all(), {}, 16), "");
}

TEST(Mesh, PassesEveryCircleTest) {
  for (const unsigned bits : {5u, 12u, 26u, 30u})
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const auto points = random_points(300, bits, seed);
      sequential_mesh b(points, 1 << bits);
      EXPECT_EQ(check_mesh(b.store.all(), points, 1 << bits), "") << bits;
      EXPECT_EQ(check_all_circles(b.store.all(), points), "");
    }
}

TEST(Mesh, AcceptsAFullGridWithCocircularPoints) {
  std::vector<grid_point> points;
  for (std::int32_t y = 1; y < 32; ++y)
    for (std::int32_t x = 1; x < 32; ++x) points.push_back({x, y});
  sequential_mesh rows(points, 32, false);
  EXPECT_EQ(check_mesh(rows.store.all(), points, 32), "");
  std::shuffle(points.begin(), points.end(), std::mt19937_64(5));
  sequential_mesh mixed(points, 32);
  EXPECT_EQ(check_mesh(mixed.store.all(), points, 32), "");
  EXPECT_EQ(check_all_circles(mixed.store.all(), points), "");
}

TEST(Mesh, AcceptsPointsOnItsBorder) {
  auto points = border_points(16, 12);
  EXPECT_EQ(points.size(), 64u);
  std::shuffle(points.begin(), points.end(), std::mt19937_64(5));
  sequential_mesh first(points, 1 << 12, false);
  EXPECT_EQ(first.duplicates, 4u) << "the corners";
  EXPECT_EQ(check_mesh(first.store.all(), points, 1 << 12), "");
  for (const grid_point p : random_points(300, 12, 8)) points.push_back(p);
  std::shuffle(points.begin(), points.end(), std::mt19937_64(6));
  sequential_mesh mixed(points, 1 << 12);
  EXPECT_EQ(check_mesh(mixed.store.all(), points, 1 << 12), "");
  EXPECT_EQ(check_all_circles(mixed.store.all(), points), "");
}

TEST(Mesh, ReportsDuplicatePoints) {
  std::vector<grid_point> points = random_points(50, 20, 9);
  points.insert(points.end(), points.begin(), points.begin() + 50);
  sequential_mesh b(points, 1 << 20, false);
  EXPECT_EQ(b.duplicates, 50u);
  EXPECT_EQ(check_mesh(b.store.all(), points, 1 << 20), "");
}

TEST(Mesh, DoesNotDependOnTheInsertionOrder) {
  auto points = random_points(5000, 26, 4);
  sequential_mesh first(points, 1 << 26);
  std::reverse(points.begin(), points.end());
  sequential_mesh second(points, 1 << 26, false);
  EXPECT_EQ(check_mesh(first.store.all(), points, 1 << 26), "");
  EXPECT_EQ(canonical(first.store.all()), canonical(second.store.all()));
}

TEST(MeshCheck, DetectsFaults) {
  const auto points = random_points(200, 16, 3);
  sequential_mesh b(points, 1 << 16);
  const auto all = b.store.all();
  EXPECT_EQ(check_mesh(all, points, 1 << 16), "");
  EXPECT_NE(check_mesh(std::span(all).first(all.size() - 1), points, 1 << 16), "");
  EXPECT_NE(check_mesh(all, std::span(points).first(199), 1 << 16), "");
  // Two triangles over four points, with inconsistent neighbours.
  triangle low{.corner = {{0, 0}, {8, 0}, {7, 7}}}, high{.corner = {{7, 7}, {0, 8}, {0, 0}}};
  low.neighbour[2] = &high;
  high.neighbour[2] = &low;
  EXPECT_EQ(check_triangle(low, 8), "an edge inside the square has no neighbour");
  low.corner[2] = {8, 8}, high.corner[0] = {8, 8};
  EXPECT_EQ(check_triangle(low, 8), "");
  low.corner[1] = {8, 7}, low.neighbour[0] = &high;
  EXPECT_EQ(check_triangle(low, 8), "two neighbours do not share an edge");
  EXPECT_NE(check_all_circles(all, std::vector<grid_point>{{32768, 32767}}), "");
}

}  // namespace
}  // namespace mesh_test
