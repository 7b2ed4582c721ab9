// SPDX-License-Identifier: Apache-2.0
#include "apps/delaunay/mesh_alone.hpp"
#include "apps/delaunay/mesh_check.hpp"

#include <gtest/gtest.h>

namespace {

using namespace quarry::apps;

constexpr std::int32_t far = 1 << most_grid_bits;

static_assert(orient({0, 0}, {far, 0}, {0, far}) == std::int64_t{far} * far);
static_assert(orient({0, 0}, {far, far}, {far - 1, far - 1}) == 0);
static_assert(orient({0, 0}, {far, far}, {far - 1, far}) > 0);
static_assert(in_circle({0, 0}, {far, 0}, {far, far}, {0, far}) == 0);
static_assert(in_circle({0, 0}, {far, 0}, {far, far}, {1, far - 1}) == 1);
static_assert(in_circle({1, 0}, {far, 1}, {far - 1, far}, {0, far}) == -1);
static_assert(circle_middle({0, 0}, {4, 0}, {4, 2}).x == 2);
static_assert(circle_middle({0, 0}, {4, 0}, {4, 2}).y == 1);

/// A triangulation of the points, one after the other.
struct built {
  plain_store store;
  std::size_t duplicates = 0;

  built(std::vector<grid_point> points, std::int32_t side, bool in_order = true) {
    mesh<plain_store> m(store);
    m.make_square(side);
    if (in_order) order_for_adding(points);
    for (const grid_point p : points) {
      const placement done = m.add(p);
      EXPECT_NE(done, placement::postponed);
      duplicates += done == placement::duplicate;
    }
  }
};

TEST(Predicates, AgreeUnderTurnsOfTheirCorners) {
  const std::vector<grid_point> points = random_points(400, most_grid_bits, 7);
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

TEST(Predicates, SeeOneStepOfTheGridOnTheLargestCircle) {
  // The circle about the middle of the grid through its corners and (0, 0).
  EXPECT_EQ(in_circle({0, 0}, {far, 0}, {0, far}, {far, far}), 0);
  EXPECT_EQ(in_circle({0, 0}, {far, 0}, {0, far}, {far - 1, far}), 1);
}

TEST(Mesh, StartsAsASquareOfTwoTriangles) {
  built one({}, 16);
  EXPECT_EQ(check_mesh(one.store.all(), {}, 16), "");
}

TEST(Mesh, PassesEveryCircleTest) {
  for (const unsigned bits : {5u, 12u, 26u, 30u})
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const auto points = random_points(300, bits, seed);
      built b(points, 1 << bits);
      EXPECT_EQ(check_mesh(b.store.all(), points, 1 << bits), "") << bits;
      EXPECT_EQ(check_all_circles(b.store.all(), points), "");
    }
}

TEST(Mesh, TakesAFullGridWhereEveryFourNeighboursLieOnACircle) {
  std::vector<grid_point> points;
  for (std::int32_t y = 1; y < 32; ++y)
    for (std::int32_t x = 1; x < 32; ++x) points.push_back({x, y});
  built rows(points, 32, false);
  EXPECT_EQ(check_mesh(rows.store.all(), points, 32), "");
  std::shuffle(points.begin(), points.end(), std::mt19937_64(5));
  built mixed(points, 32);
  EXPECT_EQ(check_mesh(mixed.store.all(), points, 32), "");
  EXPECT_EQ(check_all_circles(mixed.store.all(), points), "");
}

TEST(Mesh, TakesPointsOnItsBorder) {
  auto points = border_points(16, 12);
  EXPECT_EQ(points.size(), 64u);
  std::shuffle(points.begin(), points.end(), std::mt19937_64(5));
  built first(points, 1 << 12, false);
  EXPECT_EQ(first.duplicates, 4u) << "the corners";
  EXPECT_EQ(check_mesh(first.store.all(), points, 1 << 12), "");
  for (const grid_point p : random_points(300, 12, 8)) points.push_back(p);
  std::shuffle(points.begin(), points.end(), std::mt19937_64(6));
  built mixed(points, 1 << 12);
  EXPECT_EQ(check_mesh(mixed.store.all(), points, 1 << 12), "");
  EXPECT_EQ(check_all_circles(mixed.store.all(), points), "");
}

TEST(Mesh, RefusesAPointThatIsThere) {
  std::vector<grid_point> points = random_points(50, 20, 9);
  points.insert(points.end(), points.begin(), points.begin() + 50);
  built b(points, 1 << 20, false);
  EXPECT_EQ(b.duplicates, 50u);
  EXPECT_EQ(check_mesh(b.store.all(), points, 1 << 20), "");
}

TEST(Mesh, IsTheSameInWhateverOrderPointsCome) {
  auto points = random_points(5000, 26, 4);
  built first(points, 1 << 26);
  std::reverse(points.begin(), points.end());
  built second(points, 1 << 26, false);
  EXPECT_EQ(check_mesh(first.store.all(), points, 1 << 26), "");
  EXPECT_EQ(canonical(first.store.all()), canonical(second.store.all()));
}

TEST(MeshCheck, CatchesWhatItIsThereFor) {
  const auto points = random_points(200, 16, 3);
  built b(points, 1 << 16);
  const auto all = b.store.all();
  EXPECT_EQ(check_mesh(all, points, 1 << 16), "");
  EXPECT_NE(check_mesh(std::span(all).first(all.size() - 1), points, 1 << 16), "");
  EXPECT_NE(check_mesh(all, std::span(points).first(199), 1 << 16), "");
  // An edge turned: four points, two triangles, the other diagonal.
  triangle low{.corner = {{0, 0}, {8, 0}, {7, 7}}}, high{.corner = {{7, 7}, {0, 8}, {0, 0}}};
  low.across[2] = &high;
  high.across[2] = &low;
  EXPECT_EQ(check_triangle(low, 8), "an edge inside the square has no triangle beyond it");
  low.corner[2] = {8, 8}, high.corner[0] = {8, 8};
  EXPECT_EQ(check_triangle(low, 8), "");
  low.corner[1] = {8, 7}, low.across[0] = &high;
  EXPECT_EQ(check_triangle(low, 8), "two neighbours do not share an edge");
  EXPECT_NE(check_all_circles(all, std::vector<grid_point>{{32768, 32767}}), "");
}

}  // namespace
