// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Barnes-Hut in parallel (Lyberis et al. 2012, section 6.3, after Dubinski 1996).
///
/// Every worker has its bodies. A step:
///   balance  bodies change workers by recursive bisection (bisection.hpp)
///   build    an oct-tree of the own bodies, each level in a region of its own
///   fetch    in pairs: the boxes of the bodies are told, each finds how many levels of its tree
///            the other could open, and sends these levels' regions, whole
///   forces   the trees of all, as far as they came, hang below one; each body goes through it
/// and the bodies move by a leapfrog: half a kick, a drift, the above, half a kick.
///
///     region of the tree ---- level 0   level 1   level 2  ...     made and freed in every step
///
/// Nothing of a tree is copied or translated: a child pointer that came with a level is followed
/// when the next level came too, and not otherwise: the reach of a cell decides (oct_tree.hpp).
///
/// Check: forces against sums over all pairs, energy and momentum against those at the start.
/// Requires: the number of workers is a power of two.

#include "apps/barnes_hut/bisection.hpp"
#include "apps/barnes_hut/oct_tree.hpp"
#include "apps/common/pairing.hpp"
#include "apps/common/phases.hpp"

#include <bit>
#include <deque>

namespace quarry::apps {

struct barnes_hut_options {
  std::size_t bodies = 4096;
  unsigned steps = 4;
  double theta = 0.5;  // at most 1
  double softening = 0.05;
  double time_step = 1.0 / 64;
  unsigned leaf_size = 8;
  std::uint64_t seed = 1;
  bool check = true;          // costs a sum over all pairs, twice
  std::size_t samples = 512;  // bodies of a worker whose forces are checked
  bool keep = false;          // all bodies, in the result of every worker
};

struct barnes_hut_result {
  time_shares balance, build, fetch, forces;
  std::uint64_t interactions = 0;  // of the own bodies
  std::uint64_t cells = 0;         // built
  std::uint64_t levels_built = 0;
  std::uint64_t levels_sent = 0;
  std::uint64_t own_bodies = 0;  // in the end
  double imbalance = 0;          // in the last step: most interactions of a worker / mean
  // The check, the same for all workers:
  double force_error = 0;     // root of the mean square, relative
  double energy_drift = 0;    // relative to the energy at the start
  double momentum_drift = 0;  // relative to the sum of the sizes of all momenta
  bool correct = true;
  std::vector<body> bodies;  // by number, if kept
};

/// What the relative error of forces may be: it falls with the square of theta, from a hundredth or
/// two at 1, in trees of bodies spread like these; what is left at 0 is rounding.
constexpr double force_error_bound(double theta) { return 0.03 * theta * theta + 1e-10; }

namespace detail {

class barnes_hut {
 public:
  barnes_hut(cluster::worker& w, const barnes_hut_options& options)
      : worker_(w), options_(checked(w, options)), post_(w), clock_(w) {
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
      result_.bodies = post_.gather(bodies_);
      std::sort(result_.bodies.begin(), result_.bodies.end(),
                [](const body& a, const body& b) { return a.number < b.number; });
    }
    post_.close();
    return std::move(result_);
  }

 private:
  struct tree {
    cluster::rid all = 0;
    std::vector<cluster::rid> levels;
    cell* root = nullptr;
  };
  struct announcement {
    cell* root;
    std::uint64_t levels;  // that are going to be sent
  };

  static const barnes_hut_options& checked(cluster::worker& w, const barnes_hut_options& o) {
    if (!std::has_single_bit(w.count())) throw error("Barnes-Hut needs a power of two of workers");
    if (!(o.theta >= 0 && o.theta <= 1)) throw error("Barnes-Hut needs theta from 0 to 1");
    return o;
  }

  void accelerate() {
    bisect(worker_, post_, bodies_);
    clock_.charge(result_.balance);
    const tree mine = build();
    clock_.charge(result_.build);
    std::vector<cell*> roots = fetch(mine);
    if (mine.root != nullptr) roots.push_back(mine.root);
    clock_.charge(result_.fetch);
    compute_forces(roots);
    clock_.charge(result_.forces);
    worker_.barrier();  // nobody looks at the trees any more
    must(worker_.destroy_region(mine.all), "to free a tree");
    clock_.charge(result_.build);
  }

  tree build();
  std::vector<cell*> fetch(const tree& mine);
  void compute_forces(std::span<cell* const> roots);
  double total_energy();
  void check(double energy_before);

  cluster::worker& worker_;
  barnes_hut_options options_;
  postbox post_;
  phase_clock clock_;
  std::vector<body> bodies_;
  barnes_hut_result result_;
  std::uint64_t last_interactions_ = 0;  // of the own bodies, in the step before
};

inline auto barnes_hut::build() -> tree {
  tree t;
  t.all = must(worker_.create_region(cluster::root, 0), "a region for a tree");
  std::vector<particle> particles(bodies_.begin(), bodies_.end());
  tree_builder builder(
      options_.theta, options_.leaf_size, [&](unsigned level, std::size_t size) -> void* {
        if (level == t.levels.size())
          t.levels.push_back(must(worker_.create_region(t.all, 1), "a region for a level"));
        return must(worker_.allocate(t.levels[level], size), "a cell");
      });
  t.root = builder.build(particles);
  result_.cells += builder.cells();
  result_.levels_built += builder.levels();
  return t;
}

/// The roots of the others' trees.
inline std::vector<cell*> barnes_hut::fetch(const tree& mine) {
  std::vector<cell*> roots;
  const box3 my_box = box_around(bodies_);
  for (unsigned stage = 0; stage < pairing_stages(worker_.count()); ++stage) {
    const unsigned peer = partner(worker_.number(), stage, worker_.count());
    const box3 box = post_.swap(peer, std::span(&my_box, 1)).at(0);
    const announcement sent{
        mine.root, mine.root == nullptr || box.empty() ? 0 : levels_needed(*mine.root, box)};
    const announcement coming = post_.swap(peer, std::span(&sent, 1)).at(0);
    std::vector<cluster::rid> theirs(coming.levels);
    must(worker_.exchange(peer, std::span(mine.levels).first(sent.levels), theirs),
         "to exchange levels of trees");
    result_.levels_sent += sent.levels;
    if (coming.levels != 0) roots.push_back(coming.root);
  }
  return roots;
}

inline void barnes_hut::compute_forces(std::span<cell* const> roots) {
  std::deque<cell> grafts;
  std::vector<cell*> forest(roots.begin(), roots.end());
  while (forest.size() > 1) {
    std::vector<cell*> fewer;
    for (std::size_t i = 0; i < forest.size(); i += 8)
      fewer.push_back(&grafts.emplace_back(graft(
          std::span<cell* const>(forest).subspan(i, std::min<std::size_t>(8, forest.size() - i)))));
    forest.swap(fewer);
  }
  std::uint64_t all = 0;
  for (body& b : bodies_) {
    b.cost = 0;
    b.acceleration = tree_pull(*forest.front(), b.position, options_.softening, b.cost);
    all += b.cost;
  }
  result_.interactions += all;
  last_interactions_ = all;
}

inline double barnes_hut::total_energy() {
  const std::vector<body> all = post_.gather(bodies_);
  return post_.sum(worker_.count(), std::vector{energy(bodies_, all, options_.softening)}).front();
}

inline void barnes_hut::check(double energy_before) {
  const std::vector<body> all = post_.gather(bodies_);
  const std::size_t samples = std::min(options_.samples, bodies_.size());
  double square_errors = 0, sizes = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const body& b = bodies_[i * bodies_.size() / samples];
    const vec3 direct = direct_pull(b.position, all, options_.softening);
    const vec3 error = b.acceleration - direct;
    square_errors += dot(error, error) / dot(direct, direct);
  }
  for (const body& b : bodies_) sizes += b.mass * length(b.velocity);
  const vec3 p = momentum(bodies_);
  const std::vector<double> sums =
      post_.sum(worker_.count(), std::vector{square_errors, static_cast<double>(samples), p.x, p.y,
                                             p.z, sizes, energy(bodies_, all, options_.softening),
                                             static_cast<double>(last_interactions_)});
  const std::uint64_t most =
      post_
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
