// SPDX-License-Identifier: Apache-2.0
#pragma once
/// SVG pictures: the edges of a triangulation, and a projection of bodies coloured by worker. One
/// path per colour and integer pixel coordinates keep the files small.

#include "apps/barnes_hut/bodies.hpp"
#include "apps/delaunay/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace quarry::apps {

namespace detail {

inline constexpr int canvas = 1000;  // pixels

inline void begin_svg(std::ostream& out) {
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-5 -5 " << canvas + 10 << ' '
      << canvas + 10
      << "\">\n<rect x=\"-5\" y=\"-5\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
}
inline void path(std::ostream& out, const std::string& steps, const std::string& style) {
  if (!steps.empty()) out << "<path fill=\"none\" " << style << " d=\"" << steps << "\"/>\n";
}
/// Returns a stroke attribute; the owners' hues are equidistant.
inline std::string colour(std::size_t owner, std::size_t owners) {
  return "stroke=\"hsl(" + std::to_string(360 * owner / std::max<std::size_t>(owners, 1)) +
         ",70%,45%)\"";
}

}  // namespace detail

/// Draws every edge once. Requires: the mesh covers [0, side]^2.
inline void draw_mesh(std::ostream& out, std::span<const corners> mesh, std::int32_t side) {
  const auto pixel = [&](std::int32_t v) {
    return static_cast<int>(std::int64_t{v} * detail::canvas / side);
  };
  std::string steps;
  for (const corners& t : mesh)
    for (unsigned i = 0; i < 3; ++i) {
      const grid_point a = t[i], b = t[after(i)];
      const bool border =
          (a.x == b.x && (a.x == 0 || a.x == side)) || (a.y == b.y && (a.y == 0 || a.y == side));
      if (!border && !(a < b)) continue;  // the other triangle of this edge draws it
      const int x = pixel(a.x), y = pixel(a.y);
      steps += 'M' + std::to_string(x) + ' ' + std::to_string(y) + 'l' +
               std::to_string(pixel(b.x) - x) + ' ' + std::to_string(pixel(b.y) - y);
    }
  detail::begin_svg(out);
  detail::path(out, steps, "stroke=\"#246\" stroke-width=\".6\" stroke-linecap=\"round\"");
  out << "</svg>\n";
}

/// Draws the projection along z of the bodies with |x|, |y| < radius.
inline void draw_bodies(std::ostream& out, std::span<const body> bodies, double radius = 2) {
  std::vector<std::string> dots;  // by owner
  const double scale = detail::canvas / (2 * radius);
  for (const body& b : bodies) {
    const double x = (b.position.x + radius) * scale, y = (b.position.y + radius) * scale;
    if (dots.size() <= b.owner) dots.resize(b.owner + 1);
    if (std::abs(b.position.x) < radius && std::abs(b.position.y) < radius)
      dots[b.owner] += 'M' + std::to_string(static_cast<int>(x)) + ' ' +
                       std::to_string(static_cast<int>(y)) + "h0";
  }
  detail::begin_svg(out);
  for (std::size_t owner = 0; owner < dots.size(); ++owner)
    detail::path(
        out, dots[owner],
        detail::colour(owner, dots.size()) + " stroke-width=\"3\" stroke-linecap=\"round\"");
  out << "</svg>\n";
}

}  // namespace quarry::apps
