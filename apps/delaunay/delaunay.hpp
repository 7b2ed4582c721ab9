// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parallel Delaunay triangulation (Lyberis et al. 2012, section 6.4): Bowyer-Watson on a mesh that
/// is distributed over regions (mesh.hpp, region_store.hpp, quadrants.hpp).
///
/// One worker starts with the whole square and inserts some points. It then delegates three of its
/// four quadrants to three other workers. In the next stage all four insert points, and each
/// delegates three of its sub-quadrants, and so on. Each stage after the first consists of:
///
///   triangulate    insert the points whose cavity is local; postpone the others
///   right          send two of the four sub-quadrants, with their postponed points, to a
///                  neighbour; retry the postponed points with the new neighbourhood
///   down, left     as right, in the other directions
///   up             the sub-quadrants return to their home position
///
/// The last stage processes all remaining points. A point stays postponed after the rotations only
/// if its cavity spans more than 2 x 2 sub-quadrants. For these points the stages run backwards: a
/// worker takes back the quadrants that it delegated and retries. Worker 0 finally holds the whole
/// mesh, where no point is postponed. The program stops as soon as no worker has a postponed point.
///
/// Input: points on the border of the square, which are inserted first, and random points.
/// Requires: the number of workers is a power of four; region memory has the same addresses at all
/// workers.

#include "apps/common/mailbox.hpp"
#include "apps/common/phases.hpp"
#include "apps/delaunay/check.hpp"
#include "apps/delaunay/points.hpp"
#include "apps/delaunay/region_store.hpp"

#include <array>
#include <bit>
#include <string>

namespace quarry::apps {

struct delaunay_options {
  std::size_t points = 20'000;
  unsigned grid_bits = 26;         // coordinates are 0 ... 2^grid_bits
  unsigned points_per_leaf = 256;  // inserted in a stage, per sub-quadrant of the next stage
  unsigned border_points = 16;     // per side of a leaf at the border; a power of two, or 0
  std::uint64_t seed = 1;
  bool hand_over = false;  // transfer ownership; false: copy, as in the paper
  bool check = true;       // validate the mesh, which moves it to worker 0
  bool keep = false;       // return the mesh in the result of worker 0
  step_listener on_stage = {};
};

struct delaunay_result {
  time_shares triangulate;    // first attempt at each point
  time_shares retriangulate;  // retries after rotations
  time_shares delegate;       // quadrants to new workers; creating and freeing regions
  time_shares rotate;
  time_shares finish;  // backward stages
  // Counts of this worker:
  std::uint64_t added = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t postponed = 0;                 // on the first attempt
  std::array<std::uint64_t, 3> added_after{};  // right, down, left
  std::uint64_t added_backwards = 0;
  // Equal at all workers:
  std::uint64_t left_after_rotations = 0;  // postponed points of all workers
  std::uint64_t triangles = 0;
  bool correct = true;        // all points are inserted and the validation passed
  std::string fault;          // first fault found by the validation, at worker 0
  std::vector<corners> mesh;  // at worker 0, if options.keep
};

namespace detail {

class delaunay {
 public:
  delaunay(cluster::worker& w, const delaunay_options& options)
      : worker_(w),
        parts_(w.count()),
        options_(checked(parts_, options)),
        mail_(w),
        store_(w, parts_, options.grid_bits),
        mesh_(store_),
        clock_(w) {}

  delaunay_result run() {
    if (me() == 0) begin();
    const unsigned last = parts_.last_stage();
    for (unsigned stage = 0; stage <= last; ++stage) {
      if (!parts_.participates(stage, me())) continue;
      if (stage > 0) delegate(stage);
      // A block of this stage consists of 16 sub-quadrants of the next stage.
      const std::size_t leaves = parts_.leaves_of(stage, 0).count;
      const std::size_t enough = (std::size_t{16} * options_.points_per_leaf + leaves - 1) / leaves;
      result_.postponed +=
          add(store_.take(point_list::unprocessed, stage < last ? enough : no_limit));
      clock_.charge(result_.triangulate);
      if (stage > 0) rotate_all(stage);
      if (options_.on_stage) options_.on_stage("stage", stage + 1, last + 1);
    }
    finish();
    conclude();
    return std::move(result_);
  }

 private:
  static constexpr std::size_t no_limit = ~std::size_t{0};

  unsigned me() const { return worker_.number(); }
  std::int32_t side() const { return std::int32_t{1} << options_.grid_bits; }
  std::vector<grid_point> border() const {
    if (options_.border_points == 0) return {};
    return border_points(options_.border_points << parts_.leaf_level(), options_.grid_bits);
  }

  static const delaunay_options& checked(const quadrants& parts, const delaunay_options& o) {
    if (o.border_points != 0 && !std::has_single_bit(o.border_points))
      throw error("Delaunay: border_points must be 0 or a power of two");
    if (o.grid_bits > max_grid_bits || o.grid_bits <= parts.leaf_level() ||
        o.border_points << parts.leaf_level() > 1u << o.grid_bits)
      throw error("Delaunay: grid_bits is " + std::to_string(o.grid_bits) +
                  "; it must be at most " + std::to_string(max_grid_bits) +
                  " and give every leaf room for its border points");
    return o;
  }

  void begin();
  std::uint64_t add(std::vector<grid_point> points);
  std::uint64_t add_again();
  void delegate(unsigned stage);
  void rotate_all(unsigned stage);
  void undelegate(unsigned stage);
  void finish();
  void conclude();
  void give(unsigned peer, unsigned level, std::span<const unsigned> parts);
  void take(unsigned peer, unsigned level, std::span<const unsigned> parts);

  cluster::worker& worker_;
  quadrants parts_;
  delaunay_options options_;
  mailbox mail_;
  region_store store_;
  apps::mesh<region_store> mesh_;
  phase_clock clock_;
  delaunay_result result_;
};

/// Creates the empty square and stores every point in its leaf.
inline void delaunay::begin() {
  store_.create();
  mesh_.make_square(side());
  for (const grid_point p : border()) mesh_.add(p);
  for (const grid_point p : random_points(options_.points, options_.grid_bits, options_.seed))
    store_.put(point_list::unprocessed, p);
  clock_.charge(result_.delegate);
}

/// Inserts points. Returns the number of points that were postponed.
inline std::uint64_t delaunay::add(std::vector<grid_point> points) {
  std::uint64_t postponed = 0;
  order_for_insertion(points);
  for (const grid_point p : points) switch (mesh_.add(p)) {
      case insertion::inserted: ++result_.added; break;
      case insertion::duplicate: ++result_.duplicates; break;
      case insertion::postponed:
        store_.put(point_list::postponed, p);
        ++postponed;
        break;
    }
  return postponed;
}

/// Retries the postponed points. Returns the number of points that are no longer postponed.
inline std::uint64_t delaunay::add_again() {
  std::vector<grid_point> points = store_.take(point_list::postponed);
  const std::uint64_t tried = points.size();
  return tried - add(std::move(points));
}

// ---- regions between workers --------------------------------------------------------------------

inline void delaunay::give(unsigned peer, unsigned level, std::span<const unsigned> parts) {
  store_.set_local(level, parts, false);
  mesh_.forget_last();
  const std::vector<cluster::rid> regions = store_.regions_of(level, parts);
  throw_on_failure(
      options_.hand_over ? worker_.hand_over(peer, regions) : worker_.send(peer, regions),
      "send quadrants");
}

inline void delaunay::take(unsigned peer, unsigned level, std::span<const unsigned> parts) {
  std::vector<cluster::rid> regions = store_.regions_of(level, parts);
  throw_on_failure(
      options_.hand_over ? worker_.take_over(peer, regions) : worker_.receive(peer, regions),
      "receive quadrants");
  store_.set_local(level, parts, true);
}

/// Sends three quarters of each block of the previous stage to workers that start in this stage.
inline void delaunay::delegate(unsigned stage) {
  const unsigned block = parts_.block_of(stage, me());
  if (block % 4 == 0) {
    const std::vector<std::uint64_t> directory = store_.directory();
    for (unsigned part = block + 1; part < block + 4; ++part) {
      const unsigned peer = parts_.worker_of(stage, part);
      mail_.send(peer, std::span(directory));
      give(peer, stage, {&part, 1});
    }
  } else {
    const unsigned peer = parts_.worker_of(stage, block - block % 4);
    store_.load_directory(mail_.receive<std::uint64_t>(peer));
    take(peer, stage, {&block, 1});
  }
  clock_.charge(result_.delegate);
}

inline void delaunay::rotate_all(unsigned stage) {
  const unsigned block = parts_.block_of(stage, me());
  for (std::size_t i = 0; i + 1 < window_offsets.size(); ++i) {
    const quadrants::rotation r =
        quadrants::rotate(stage, block, window_offsets[i], window_offsets[i + 1]);
    const unsigned to = parts_.worker_of(stage, r.to), from = parts_.worker_of(stage, r.from);
    if (r.sends_first) give(to, stage + 1, r.sent);
    take(from, stage + 1, r.received);
    if (!r.sends_first) give(to, stage + 1, r.sent);
    clock_.charge(result_.rotate);
    if (i < result_.added_after.size()) {
      result_.added_after[i] += add_again();
      clock_.charge(result_.retriangulate);
    }
  }
}

/// Reverses delegate().
inline void delaunay::undelegate(unsigned stage) {
  if (!parts_.participates(stage, me())) return;
  const unsigned block = parts_.block_of(stage, me());
  if (block % 4 == 0)
    for (unsigned part = block + 1; part < block + 4; ++part)
      take(parts_.worker_of(stage, part), stage, {&part, 1});
  else
    give(parts_.worker_of(stage, block - block % 4), stage, {&block, 1});
}

// ---- completion ---------------------------------------------------------------------------------

inline void delaunay::finish() {
  const auto left = [&] {
    return mail_.sum(worker_.count(), std::vector{store_.pending_points(point_list::postponed)})
        .front();
  };
  std::uint64_t rest = result_.left_after_rotations = left();
  for (unsigned stage = parts_.last_stage(); stage > 0; --stage) {
    if (rest == 0 && !options_.check && !options_.keep) break;
    undelegate(stage);
    result_.added_backwards += add_again();
    rest = left();
  }
  result_.correct = rest == 0;
  clock_.charge(result_.finish);
}

inline void delaunay::conclude() {
  const std::vector<const triangle*> is_local = store_.local_triangles();
  if (me() == 0 && options_.check) {
    std::vector<grid_point> points = border();
    for (const grid_point p : random_points(options_.points, options_.grid_bits, options_.seed))
      points.push_back(p);
    result_.fault = store_.check_lists();
    if (result_.fault.empty()) result_.fault = check_mesh(is_local, points, side());
  }
  if (me() == 0 && options_.keep) result_.mesh = canonical(is_local);
  const std::vector<std::uint64_t> sums =
      mail_.sum(worker_.count(),
                std::vector<std::uint64_t>{is_local.size(), result_.fault.empty() ? 0u : 1u});
  result_.triangles = sums[0];
  result_.correct = result_.correct && sums[1] == 0;
  time_shares unreported;
  clock_.charge(unreported);
  mail_.close();
  if (me() == 0) store_.free();
  clock_.charge(result_.delegate);
}

}  // namespace detail

inline delaunay_result run(cluster::worker& w, const delaunay_options& options) {
  return detail::delaunay(w, options).run();
}

}  // namespace quarry::apps
