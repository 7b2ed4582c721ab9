// SPDX-License-Identifier: Apache-2.0
// scheduler: what all nodes do together (barrier, end of the program), and reports.
#include "cluster/scheduler/state.hpp"

#include <utility>

namespace quarry::cluster::detail {

/// Records the arrival of one child; true if all children have arrived.
bool scheduler::all_arrived(collective& c, const envelope& e) {
  c.waiting.push_back(e);
  return c.waiting.size() >= children_.size();
}

void scheduler::on(const envelope& e, const barrier_request& r) {
  if (!all_arrived(barrier_, e)) return;
  if (self_ == 0)
    end_barrier();
  else
    send_to(shape_.parent(self_), r, collective_ticket);
}

void scheduler::end_barrier() {
  const collective ended = std::exchange(barrier_, {});
  for (const envelope& child : ended.waiting) reply(child, acknowledgement{});
}

void scheduler::on(const envelope& e, const finish_request& r) {
  finish_request& sum = finish_.sum;
  sum.regions += r.regions;
  sum.objects += r.objects;
  sum.bytes += r.bytes;
  if (!all_arrived(finish_, e)) return;
  sum.regions += regions_->regions() - 1;
  regions_->for_each_below(*regions_->find(root_region), [&](region_tree::node_type& n) {
    const pool_statistics p = n.it->pool.statistics();
    sum.objects += p.objects;
    sum.bytes += p.live_bytes;
  });
  if (self_ == 0)
    end_program({sum.regions, sum.objects, sum.bytes});
  else
    send_to(shape_.parent(self_), sum, collective_ticket);
}

void scheduler::on(const envelope& e, const finish_reply& r) {
  if (e.from == shape_.parent(self_) && e.ticket == collective_ticket) end_program(r);
}

void scheduler::end_program(const finish_reply& total) {
  const collective ended = std::exchange(finish_, {});
  for (const envelope& child : ended.waiting) reply(child, total);
  finished_ = true;
}

void scheduler::on(const envelope& e, const load_report& r) {
  loads_[e.from] = r.regions;
  report_load();
}

void scheduler::on(const envelope&, const progress_report& r) {
  progress_.allocations += r.allocations;
  progress_.calls += r.calls;
  progress_.messages += r.messages;
}

}  // namespace quarry::cluster::detail
