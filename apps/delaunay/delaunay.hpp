// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Delaunay triangulation in parallel (Lyberis et al. 2012, section 6.4): Bowyer-Watson on a mesh
/// that is spread over regions (mesh.hpp, mesh_squares.hpp, quadrants.hpp).
///
/// One worker starts with the whole square and adds some points. Then it gives three quadrants to
/// three other workers, all four add points in theirs, give away quadrants of these, and so on. In
/// each stage but the first:
///
///   triangulate    a point is added if all it touches is here, else postponed
///   right          half of the sub-quadrants move to the next worker, and the points postponed in
///   down           them too; all are tried again, now with other neighbours; and so on
///   left
///   up             everything is at home again
///
/// In the last stage all points are added that can be. Few or none are left: those that touch
/// triangles in more than two by two sub-quadrants. For them the stages are gone through backwards:
/// a worker takes the quadrants back that it gave away, and tries again. The first has everything
/// in the end, where no point is ever postponed. It stops as soon as no worker has a point left.
///
/// The points are those given by the seed and some on the border of the square, which come first.
/// Requires: the number of workers is a power of four; memory that all see at the same addresses.

#include "apps/common/phases.hpp"
#include "apps/common/postbox.hpp"
#include "apps/delaunay/mesh_alone.hpp"
#include "apps/delaunay/mesh_check.hpp"
#include "apps/delaunay/mesh_squares.hpp"

#include <array>
#include <bit>

namespace quarry::apps {

struct delaunay_options {
  std::size_t points = 20'000;
  unsigned grid_bits = 26;         // coordinates are less than 2^grid_bits
  unsigned points_a_square = 256;  // before a stage ends, for each sub-quadrant of the next
  unsigned border_points = 16;     // on a side of a leaf at the border; a power of two, or 0
  std::uint64_t seed = 1;
  bool hand_over = false;  // quadrants move; else they are copied, as in the paper
  bool check = true;       // brings all triangles to one worker
  bool keep = false;       // the triangles, in the result of worker 0; brings them there too
};

struct delaunay_result {
  time_shares triangulate;    // points for the first time
  time_shares retriangulate;  // after rotations
  time_shares delegate;       // quadrants to more workers, regions made and freed
  time_shares rotate;
  time_shares finish;  // backwards
  // By this worker:
  std::uint64_t added = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t postponed = 0;                 // when tried for the first time
  std::array<std::uint64_t, 3> added_after{};  // right, down, left
  std::uint64_t added_backwards = 0;
  // The same for all workers:
  std::uint64_t left_after_rotations = 0;  // of all points
  std::uint64_t triangles = 0;
  bool correct = true;        // all points are in, and the check found no fault
  std::string fault;          // what the check found, at worker 0
  std::vector<corners> mesh;  // if kept, at worker 0
};

namespace detail {

class delaunay {
 public:
  delaunay(cluster::worker& w, const delaunay_options& options)
      : worker_(w),
        parts_(w.count()),
        options_(checked(parts_, options)),
        post_(w),
        squares_(w, parts_, options.grid_bits),
        mesh_(squares_),
        clock_(w) {}

  delaunay_result run() {
    if (me() == 0) begin();
    const unsigned last = parts_.last_stage();
    for (unsigned stage = 0; stage <= last; ++stage) {
      if (!parts_.takes_part(stage, me())) continue;
      if (stage > 0) delegate(stage);
      // The block of this stage has sixteen sub-quadrants of the next one.
      const std::size_t leaves = parts_.leaves_of(stage, 0).count;
      const std::size_t enough = (std::size_t{16} * options_.points_a_square + leaves - 1) / leaves;
      result_.postponed += add(squares_.take(point_list::fresh, stage < last ? enough : all_));
      clock_.charge(result_.triangulate);
      if (stage > 0) go_round(stage);
    }
    finish();
    conclude();
    return std::move(result_);
  }

 private:
  static constexpr std::size_t all_ = ~std::size_t{0};

  unsigned me() const { return worker_.number(); }
  std::int32_t side() const { return std::int32_t{1} << options_.grid_bits; }
  std::vector<grid_point> border() const {
    if (options_.border_points == 0) return {};
    return border_points(options_.border_points << parts_.leaf_level(), options_.grid_bits);
  }

  static const delaunay_options& checked(const quadrants& parts, const delaunay_options& o) {
    if (o.border_points != 0 && !std::has_single_bit(o.border_points))
      throw error("the points on the border of a leaf have to be a power of two, or none");
    if (o.grid_bits > most_grid_bits || o.grid_bits <= parts.leaf_level() ||
        o.border_points << parts.leaf_level() > 1u << o.grid_bits)
      throw error(
          "the grid of the points is too fine for exact numbers, or too coarse for the leaves");
    return o;
  }

  void begin();
  std::uint64_t add(std::vector<grid_point> points);
  std::uint64_t add_again();
  void delegate(unsigned stage);
  void go_round(unsigned stage);
  void take_back(unsigned stage);
  void finish();
  void conclude();
  void give(unsigned peer, unsigned level, std::span<const unsigned> parts);
  void take(unsigned peer, unsigned level, std::span<const unsigned> parts);

  cluster::worker& worker_;
  quadrants parts_;
  delaunay_options options_;
  postbox post_;
  mesh_squares squares_;
  apps::mesh<mesh_squares> mesh_;
  phase_clock clock_;
  delaunay_result result_;
};

/// The empty square, and all points, each in its leaf.
inline void delaunay::begin() {
  squares_.create();
  mesh_.make_square(side());
  for (const grid_point p : border()) mesh_.add(p);
  for (const grid_point p : random_points(options_.points, options_.grid_bits, options_.seed))
    squares_.put(point_list::fresh, p);
  clock_.charge(result_.delegate);
}

/// How many were postponed.
inline std::uint64_t delaunay::add(std::vector<grid_point> points) {
  std::uint64_t postponed = 0;
  order_for_adding(points);
  for (const grid_point p : points) switch (mesh_.add(p)) {
      case placement::placed: ++result_.added; break;
      case placement::duplicate: ++result_.duplicates; break;
      case placement::postponed:
        squares_.put(point_list::postponed, p);
        ++postponed;
        break;
    }
  return postponed;
}

/// Tries the postponed points once more; how many are not postponed any longer.
inline std::uint64_t delaunay::add_again() {
  std::vector<grid_point> points = squares_.take(point_list::postponed);
  const std::uint64_t tried = points.size();
  return tried - add(std::move(points));
}

// ---- regions between workers --------------------------------------------------------------------

inline void delaunay::give(unsigned peer, unsigned level, std::span<const unsigned> parts) {
  squares_.set_here(level, parts, false);
  mesh_.forget_where();
  const std::vector<cluster::rid> regions = squares_.regions_of(level, parts);
  must(options_.hand_over ? worker_.hand_over(peer, regions) : worker_.send(peer, regions),
       "to send quadrants");
}

inline void delaunay::take(unsigned peer, unsigned level, std::span<const unsigned> parts) {
  std::vector<cluster::rid> regions = squares_.regions_of(level, parts);
  must(options_.hand_over ? worker_.take_over(peer, regions) : worker_.receive(peer, regions),
       "to receive quadrants");
  squares_.set_here(level, parts, true);
}

/// Of each block of the stage before, three parts go to workers that begin with this stage.
inline void delaunay::delegate(unsigned stage) {
  const unsigned block = parts_.block_of(stage, me());
  if (block % 4 == 0) {
    const std::vector<std::uint64_t> directory = squares_.directory();
    for (unsigned part = block + 1; part < block + 4; ++part) {
      const unsigned peer = parts_.worker_of(stage, part);
      post_.send(peer, std::span(directory));
      give(peer, stage, {&part, 1});
    }
  } else {
    const unsigned peer = parts_.worker_of(stage, block - block % 4);
    squares_.learn(post_.receive<std::uint64_t>(peer));
    take(peer, stage, {&block, 1});
  }
  clock_.charge(result_.delegate);
}

inline void delaunay::go_round(unsigned stage) {
  const unsigned block = parts_.block_of(stage, me());
  for (std::size_t i = 0; i + 1 < window_offsets.size(); ++i) {
    const quadrants::rotation r =
        quadrants::rotate(stage, block, window_offsets[i], window_offsets[i + 1]);
    const unsigned to = parts_.worker_of(stage, r.to), from = parts_.worker_of(stage, r.from);
    if (r.gives_first) give(to, stage + 1, r.given);
    take(from, stage + 1, r.taken);
    if (!r.gives_first) give(to, stage + 1, r.given);
    clock_.charge(result_.rotate);
    if (i < result_.added_after.size()) {
      result_.added_after[i] += add_again();
      clock_.charge(result_.retriangulate);
    }
  }
}

/// delegate, backwards.
inline void delaunay::take_back(unsigned stage) {
  if (!parts_.takes_part(stage, me())) return;
  const unsigned block = parts_.block_of(stage, me());
  if (block % 4 == 0)
    for (unsigned part = block + 1; part < block + 4; ++part)
      take(parts_.worker_of(stage, part), stage, {&part, 1});
  else
    give(parts_.worker_of(stage, block - block % 4), stage, {&block, 1});
}

// ---- the end ------------------------------------------------------------------------------------

inline void delaunay::finish() {
  const auto left = [&] {
    return post_.sum(worker_.count(), std::vector{squares_.waiting(point_list::postponed)}).front();
  };
  std::uint64_t rest = result_.left_after_rotations = left();
  for (unsigned stage = parts_.last_stage(); stage > 0; --stage) {
    if (rest == 0 && !options_.check && !options_.keep) break;
    take_back(stage);
    result_.added_backwards += add_again();
    rest = left();
  }
  result_.correct = rest == 0;
  clock_.charge(result_.finish);
}

inline void delaunay::conclude() {
  const std::vector<const triangle*> here = squares_.triangles_here();
  if (me() == 0 && options_.check) {
    std::vector<grid_point> points = border();
    for (const grid_point p : random_points(options_.points, options_.grid_bits, options_.seed))
      points.push_back(p);
    result_.fault = squares_.check_lists();
    if (result_.fault.empty()) result_.fault = check_mesh(here, points, side());
  }
  if (me() == 0 && options_.keep) result_.mesh = canonical(here);
  const std::vector<std::uint64_t> sums = post_.sum(
      worker_.count(), std::vector<std::uint64_t>{here.size(), result_.fault.empty() ? 0u : 1u});
  result_.triangles = sums[0];
  result_.correct = result_.correct && sums[1] == 0;
  time_shares not_counted;
  clock_.charge(not_counted);
  post_.close();
  if (me() == 0) squares_.free();
  clock_.charge(result_.delegate);
}

}  // namespace detail

inline delaunay_result run(cluster::worker& w, const delaunay_options& options) {
  return detail::delaunay(w, options).run();
}

}  // namespace quarry::apps
