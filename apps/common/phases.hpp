// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Breaks the time of a worker down by phase of the program, and within a phase into computation,
/// waiting for other workers, and waiting for schedulers (Figure 4e of Lyberis et al. 2012).

#include <quarry/cluster/worker.hpp>

#include <cstdint>
#include <functional>

namespace quarry::apps {

/// Called by a worker with the kind of step, the steps that it has finished, and all steps:
/// ("stage", 3, 15). May be empty.
using step_listener = std::function<void(const char* step, std::uint64_t done, std::uint64_t all)>;

struct time_shares {
  double computation = 0;  // seconds, as are the next two
  double workers = 0;      // waiting for other workers
  double schedulers = 0;   // waiting for schedulers
  double total() const { return computation + workers + schedulers; }
  time_shares& operator+=(const time_shares& o) {
    computation += o.computation, workers += o.workers, schedulers += o.schedulers;
    return *this;
  }
};

class phase_clock {
 public:
  explicit phase_clock(cluster::worker& w) : worker_(&w) { now_ = read(); }

  /// Adds the time since the previous charge(), or since construction, to `phase`.
  void charge(time_shares& phase) {
    const reading before = now_;
    now_ = read();
    const double workers = now_.workers - before.workers;
    const double schedulers = now_.schedulers - before.schedulers;
    phase += {now_.time - before.time - workers - schedulers, workers, schedulers};
  }

 private:
  struct reading {
    double time, workers, schedulers;
  };
  reading read() const {
    const cluster::worker_statistics& s = worker_->statistics();
    return {worker_->now(), s.waited_for_workers, s.waited_for_schedulers};
  }
  cluster::worker* worker_;
  reading now_;
};

}  // namespace quarry::apps
