// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parallel Barnes-Hut (Lyberis et al. 2012, section 6.3, after Dubinski 1996).
///
/// Every worker owns a set of bodies. Each step has four phases:
///   balance  recursive bisection redistributes the bodies over the workers (bisection.hpp)
///   build    every worker builds an oct-tree of its bodies, with one region per tree level; all
///            trees divide the cube around the bodies of all workers
///   fetch    every pair of workers exchanges bounding boxes; each worker determines how many
///            levels of its tree the partner's bodies can open, and sends the regions of those
///            levels
///   forces   every worker grafts its own tree and the received levels into one tree
///            (grafting.hpp), and traverses it for each of its bodies
/// A leapfrog integrator moves the bodies: half kick, drift, the four phases, half kick.
///
///     region of the tree ---- level 0   level 1   level 2  ...     created and freed in every step
///
/// Received levels are used in place: no pointer is translated. A child pointer of the last
/// received level dangles, and the traversal does not follow it: the opening radius of the cell
/// excludes it (oct_tree.hpp).
///
/// Check: the forces against direct summation, energy and momentum against their initial values.
/// Requires: the number of workers is a power of two.

#include "apps/barnes_hut/bisection.hpp"
#include "apps/barnes_hut/grafting.hpp"
#include "apps/common/pairing.hpp"
#include "apps/common/phases.hpp"

#include <bit>
#include <string>

namespace quarry::apps {

struct barnes_hut_options {
  std::size_t bodies = 4096;
  unsigned steps = 4;
  double theta = 0.5;  // at most 1
  double softening = 0.05;
  double time_step = 1.0 / 64;
  unsigned leaf_size = 8;
  std::uint64_t seed = 1;
  bool check = true;          // computes the energy twice, by direct summation
  std::size_t samples = 512;  // bodies per worker whose forces are checked
  bool keep = false;          // return all bodies in the result of every worker
  step_listener on_step = {};
};

struct barnes_hut_result {
  time_shares balance, build, fetch, forces;
  std::uint64_t interactions = 0;  // computed by this worker
  std::uint64_t cells = 0;         // built by this worker
  std::uint64_t levels_built = 0;
  std::uint64_t levels_sent = 0;
  std::uint64_t own_bodies = 0;  // after the last step
  double imbalance = 0;          // last step: maximum interactions per worker / mean
  // Results of the check, equal at all workers:
  double force_error = 0;     // relative, root mean square
  double energy_drift = 0;    // relative to the initial energy
  double momentum_drift = 0;  // relative to the sum of the magnitudes of all momenta
  bool correct = true;
  std::vector<body> bodies;  // by number, if options.keep
};

/// Upper bound for the relative force error in a Plummer sphere. The error is proportional to theta
/// squared, with 0.01 to 0.02 at theta = 1. At theta = 0 only rounding remains.
constexpr double force_error_bound(double theta) { return 0.03 * theta * theta + 1e-10; }

namespace detail {

class barnes_hut {
 public:
  barnes_hut(cluster::worker& w, const barnes_hut_options& options)
      : worker_(w), options_(checked(w, options)), mail_(w), clock_(w) {
    const std::vector<body> all = plummer_sphere(options.bodies, options.seed);
    const auto part = [&](unsigned i) {
      return all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / w.count());
    };
    bodies_.assign(part(w.number()), part(w.number() + 1));
  }

  barnes_hut_result run() {
    const double energy_before = options_.check ? total_energy() : 0;
    worker_.barrier();
    time_shares preparation;
    clock_.charge(preparation);
    accelerate();
    for (unsigned i = 0; i < options_.steps; ++i) {
      if (options_.on_step) options_.on_step("step", i, options_.steps);
      for (body& b : bodies_) {
        b.velocity += (0.5 * options_.time_step) * b.acceleration;
        b.position += options_.time_step * b.velocity;
      }
      accelerate();
      for (body& b : bodies_) b.velocity += (0.5 * options_.time_step) * b.acceleration;
      clock_.charge(result_.forces);
    }
    result_.own_bodies = bodies_.size();
    if (options_.check) check(energy_before);
    if (options_.keep) {
      result_.bodies = mail_.gather(bodies_);
      std::sort(result_.bodies.begin(), result_.bodies.end(),
                [](const body& a, const body& b) { return a.number < b.number; });
    }
    mail_.close();
    return std::move(result_);
  }

 private:
  struct tree {
    cluster::rid all = cluster::root;
    std::vector<cluster::rid> levels;
    cell* root = nullptr;
  };
  struct announcement {
    cell* root;
    std::uint64_t levels;  // number of levels that the sender will send
  };

  static const barnes_hut_options& checked(cluster::worker& w, const barnes_hut_options& o) {
    if (!std::has_single_bit(w.count()))
      throw error("Barnes-Hut: the number of workers is " + std::to_string(w.count()) +
                  "; it must be a power of two");
    if (!(o.theta >= 0 && o.theta <= 1))
      throw error("Barnes-Hut: theta is " + std::to_string(o.theta) + "; it must be from 0 to 1");
    return o;
  }

  void accelerate() {
    const cube3 cube = cube_around(balance_by_bisection(worker_, mail_, bodies_));
    clock_.charge(result_.balance);
    const tree mine = build(cube);
    clock_.charge(result_.build);
    std::vector<tree_part> roots = fetch(mine);
    if (mine.root != nullptr) roots.push_back({mine.root, max_levels});
    clock_.charge(result_.fetch);
    compute_forces(std::move(roots), cube);
    clock_.charge(result_.forces);
    worker_.barrier();  // no worker reads this tree after the barrier
    throw_on_failure(worker_.destroy_region(mine.all), "free a tree");
    clock_.charge(result_.build);
  }

  tree build(const cube3& cube);
  std::vector<tree_part> fetch(const tree& mine);
  void compute_forces(std::vector<tree_part> roots, const cube3& cube);
  double total_energy();
  void check(double energy_before);

  cluster::worker& worker_;
  barnes_hut_options options_;
  mailbox mail_;
  phase_clock clock_;
  std::vector<body> bodies_;
  barnes_hut_result result_;
  std::uint64_t last_interactions_ = 0;  // of this worker in the previous step
};

inline auto barnes_hut::build(const cube3& cube) -> tree {
  tree t;
  t.all = value_or_throw(worker_.create_region(cluster::root, 0), "create the region of a tree");
  std::vector<particle> particles(bodies_.begin(), bodies_.end());
  tree_builder builder(
      options_.theta, options_.leaf_size, [&](unsigned level, std::size_t size) -> void* {
        if (level == t.levels.size())
          t.levels.push_back(
              value_or_throw(worker_.create_region(t.all, 1), "create the region of a tree level"));
        return value_or_throw(worker_.allocate(t.levels[level], size), "allocate a cell");
      });
  if (!particles.empty()) t.root = builder.build(particles, cube);
  result_.cells += builder.cells();
  result_.levels_built += builder.levels();
  return t;
}

/// Returns the roots of the trees of all other workers that sent at least one level.
inline std::vector<tree_part> barnes_hut::fetch(const tree& mine) {
  std::vector<tree_part> roots;
  const box3 my_box = box_around(bodies_);
  for (unsigned stage = 0; stage < pairing_stages(worker_.count()); ++stage) {
    const unsigned peer = partner(worker_.number(), stage, worker_.count());
    const box3 box = mail_.swap(peer, std::span(&my_box, 1)).at(0);
    const announcement sent{
        mine.root, mine.root == nullptr || box.empty() ? 0 : levels_needed(*mine.root, box)};
    const announcement coming = mail_.swap(peer, std::span(&sent, 1)).at(0);
    std::vector<cluster::rid> theirs(coming.levels);
    throw_on_failure(worker_.exchange(peer, std::span(mine.levels).first(sent.levels), theirs),
                     "exchange tree levels");
    result_.levels_sent += sent.levels;
    if (coming.levels != 0) roots.push_back({coming.root, static_cast<unsigned>(coming.levels)});
  }
  return roots;
}

inline void barnes_hut::compute_forces(std::vector<tree_part> roots, const cube3& cube) {
  tree_grafter grafter(options_.theta, options_.leaf_size, box_around(bodies_));
  const cell* forest = grafter.graft(std::move(roots), cube);
  std::uint64_t all = 0;
  for (body& b : bodies_) {
    b.cost = 0;
    b.acceleration = tree_acceleration(*forest, b.position, options_.softening, b.cost);
    all += b.cost;
  }
  result_.interactions += all;
  last_interactions_ = all;
}

inline double barnes_hut::total_energy() {
  const std::vector<body> all = mail_.gather(bodies_);
  return mail_.sum(worker_.count(), std::vector{energy(bodies_, all, options_.softening)}).front();
}

inline void barnes_hut::check(double energy_before) {
  const std::vector<body> all = mail_.gather(bodies_);
  const std::size_t samples = std::min(options_.samples, bodies_.size());
  double square_errors = 0, sizes = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const body& b = bodies_[i * bodies_.size() / samples];
    const vec3 direct = direct_acceleration(b.position, all, options_.softening);
    const vec3 error = b.acceleration - direct;
    square_errors += dot(error, error) / dot(direct, direct);
  }
  for (const body& b : bodies_) sizes += b.mass * length(b.velocity);
  const vec3 p = momentum(bodies_);
  const std::vector<double> sums =
      mail_.sum(worker_.count(), std::vector{square_errors, static_cast<double>(samples), p.x, p.y,
                                             p.z, sizes, energy(bodies_, all, options_.softening),
                                             static_cast<double>(last_interactions_)});
  const std::uint64_t most =
      mail_
          .reduce(worker_.count(), std::vector{last_interactions_},
                  [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); })
          .front();
  result_.imbalance = static_cast<double>(most) * worker_.count() / sums[7];
  result_.force_error = std::sqrt(sums[0] / sums[1]);
  result_.momentum_drift = length({sums[2], sums[3], sums[4]}) / sums[5];
  result_.energy_drift = std::abs(sums[6] / energy_before - 1);
  result_.correct = all.size() == options_.bodies &&
                    result_.force_error < force_error_bound(options_.theta) &&
                    result_.energy_drift < 0.01 && result_.momentum_drift < 0.01;
}

}  // namespace detail

inline barnes_hut_result run(cluster::worker& w, const barnes_hut_options& options) {
  return detail::barnes_hut(w, options).run();
}

}  // namespace quarry::apps
