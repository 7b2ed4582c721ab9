// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Bodies under gravity: initial conditions, pairwise acceleration, energy and momentum.
///
/// Units: G = 1; the total mass is 1 and the total energy -1/4 (Heggie, Mathieu 1986). Forces are
/// softened (Plummer 1911): the acceleration at distance r is r / (r^2 + e^2)^(3/2), and a body
/// does not accelerate itself.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <vector>

namespace quarry::apps {

struct vec3 {
  double x = 0, y = 0, z = 0;
  double operator[](unsigned axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
  friend vec3 operator+(vec3 a, vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend vec3 operator-(vec3 a, vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend vec3 operator*(double s, vec3 a) { return {s * a.x, s * a.y, s * a.z}; }
  vec3& operator+=(vec3 b) { return *this = *this + b; }
};
inline double dot(vec3 a, vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline double length(vec3 a) { return std::sqrt(dot(a, a)); }

struct particle {
  vec3 position;
  double mass = 0;
};

struct body : particle {
  vec3 velocity;
  vec3 acceleration;
  std::uint64_t cost = 1;  // interactions computed for this body in the previous step
  std::uint32_t number = 0;
  std::uint32_t owner = 0;
};

/// The bounding box of a set of points. The box of the empty set has low = infinity, high =
/// -infinity.
struct box3 {
  static constexpr double far = std::numeric_limits<double>::infinity();
  vec3 low{far, far, far};
  vec3 high{-far, -far, -far};

  void add(vec3 p) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
  }
  void add(const box3& b) {
    if (!b.empty()) add(b.low), add(b.high);
  }
  bool empty() const { return low.x > high.x; }
  unsigned longest_axis() const {
    const vec3 e = high - low;
    return e.x >= e.y && e.x >= e.z ? 0 : e.y >= e.z ? 1 : 2;
  }
};

template <class Bodies>
box3 box_around(const Bodies& bodies) {
  box3 box;
  for (const auto& b : bodies) box.add(b.position);
  return box;
}

/// Returns the acceleration at `at` caused by one particle.
inline vec3 acceleration_by(vec3 at, const particle& by, double softening) {
  const vec3 d = by.position - at;
  const double r2 = dot(d, d) + softening * softening;
  return (by.mass / (r2 * std::sqrt(r2))) * d;
}
/// Returns the acceleration at `at` by direct summation.
inline vec3 direct_acceleration(vec3 at, std::span<const body> bodies, double softening) {
  vec3 sum;
  for (const body& b : bodies) sum += acceleration_by(at, b, softening);
  return sum;
}

/// Returns the kinetic energy of `mine` plus half of their potential energy against `all`. The sum
/// over a partition of `all` is the total energy.
inline double energy(std::span<const body> mine, std::span<const body> all, double softening) {
  double sum = 0;
  for (const body& a : mine) {
    double potential = 0;
    for (const body& b : all)
      if (b.number != a.number) {
        const vec3 d = b.position - a.position;
        potential -= b.mass / std::sqrt(dot(d, d) + softening * softening);
      }
    sum += 0.5 * a.mass * (dot(a.velocity, a.velocity) + potential);
  }
  return sum;
}
inline vec3 momentum(std::span<const body> bodies) {
  vec3 sum;
  for (const body& b : bodies) sum += b.mass * b.velocity;
  return sum;
}

/// Returns a Plummer sphere in virial equilibrium (Aarseth, Henon, Wielen 1974), with its centre of
/// mass at rest at the origin. The result depends on `count` and `seed` only.
inline std::vector<body> plummer_sphere(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const auto direction = [&] {
    const double z = 2 * uniform() - 1, turn = 2 * std::numbers::pi * uniform();
    const double r = std::sqrt(1 - z * z);
    return vec3{r * std::cos(turn), r * std::sin(turn), z};
  };
  constexpr double size = 3 * std::numbers::pi / 16;
  std::vector<body> bodies(count);
  vec3 middle, drift;
  for (std::size_t i = 0; i < count; ++i) {
    body& b = bodies[i];
    b.number = static_cast<std::uint32_t>(i);
    b.mass = 1.0 / static_cast<double>(count);
    // The outermost 0.1 % of the mass is omitted: it would enlarge the bounding box.
    const double r = 1 / std::sqrt(std::pow(0.999 * uniform(), -2.0 / 3) - 1);
    double q = 0, g = 1;  // speed / escape speed, by rejection sampling
    while (g > q * q * std::pow(1 - q * q, 3.5)) q = uniform(), g = 0.1 * uniform();
    b.position = size * r * direction();
    b.velocity =
        std::sqrt(1 / size) * q * std::sqrt(2.0) * std::pow(1 + r * r, -0.25) * direction();
    middle += b.mass * b.position;
    drift += b.mass * b.velocity;
  }
  for (body& b : bodies) b.position += -1.0 * middle, b.velocity += -1.0 * drift;
  return bodies;
}

}  // namespace quarry::apps
