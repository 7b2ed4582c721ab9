// SPDX-License-Identifier: Apache-2.0
// simulation: the event loop, workers as fibers, the network in virtual time.
#include "cluster/simulation/engine.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#if QUARRY_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace quarry::cluster {

using namespace detail;

// ---- simulation ---------------------------------------------------------------------------------

simulation::simulation(const simulation_options& options)
    : engine_(std::make_unique<engine>(*this, options)) {}
simulation::~simulation() = default;

simulation_result simulation::run(const std::function<void(cluster::worker&)>& worker_main) {
  engine_->run(worker_main);
  return engine_->result();
}
const shape& simulation::tree() const { return engine_->tree(); }
const simulation_result& simulation::so_far() const { return engine_->result(); }
std::string simulation::check_invariants() const { return engine_->check_invariants(); }
scheduler_statistics simulation::statistics_of(node_id scheduler) const {
  return engine_->scheduler_at(scheduler).statistics();
}

// ---- engine -------------------------------------------------------------------------------------

thread_local simulation::engine* simulation::engine::current_ = nullptr;

simulation::engine::engine(simulation& owner, const simulation_options& options)
    : owner_(owner),
      options_(options),
      shape_(shape::for_workers(options.workers, options.tree)),
      random_(options.seed),
      busy_until_(shape_.schedulers()),
      received_(shape_.schedulers()),
      workers_(options.workers) {
  scheduler_options so;
  so.capacity = options.capacity;
  so.tuning = options.tuning;
  so.fault = options.fault;
  options_.worker.fault = options.fault;
  for (node_id n = 0; n < shape_.schedulers(); ++n)
    schedulers_.push_back(std::make_unique<scheduler>(shape_, n, so));
  void* memory = ::mmap(nullptr, stack_stride() * options.workers, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw out_of_memory("cannot allocate the stacks of " + std::to_string(options.workers) +
                        " simulated workers; simulate fewer, or with smaller stacks");
  stacks_ = static_cast<char*>(memory);
  if (!options.isolated) memory_ = address_range(pointer(default_base), options.capacity);
  for (unsigned i = 0; i < options.workers; ++i) {
    workers_[i].connection = std::make_unique<sim_link>(*this, i);
    if (options.isolated)
      workers_[i].memory = address_range(options.capacity, address_range::system_page);
    char* bottom = stacks_ + i * stack_stride();
    // Each guard page costs a mapping, of which a process has about 65,000: only the first workers
    // have one.
    if (i < 4096) (void)::mprotect(bottom, simt::detail::guard_bytes, PROT_NONE);
    workers_[i].thread.make(bottom + simt::detail::guard_bytes, i, &engine::enter, options.stack);
  }
  main_.adopt_thread();
}

simulation::engine::~engine() { release_stacks(); }

void simulation::engine::release_stacks() {
  const std::size_t size = stack_stride() * options_.workers;
#if QUARRY_ASAN
  // The stacks of abandoned workers stay, for the leak check to find what they refer to.
  for (const worker_state& w : workers_)
    if (w.started && !w.ended) {
      __lsan_register_root_region(stacks_, size);
      return;
    }
  __asan_unpoison_memory_region(stacks_, size);
#endif
  ::munmap(stacks_, size);
}

// ---- workers ------------------------------------------------------------------------------------

void simulation::engine::enter() {
  engine& e = *current_;
  const unsigned number = e.running_;
  e.run_worker(number);
  e.workers_[number].ended = true;
  for (;;) simt::detail::fiber::jump(e.workers_[number].thread, e.main_, true);
}

void simulation::engine::run_worker(unsigned number) {
  worker_state& me = workers_[number];
  try {
    cluster::worker w(*me.connection, options_.worker);
    try {
      (*worker_main_)(w);
    } catch (...) {
      me.exception = std::current_exception();
    }
    if (!me.exception) result_.left = w.finish();
    me.statistics = w.statistics();
  } catch (...) {
    if (!me.exception) me.exception = std::current_exception();
  }
}

void simulation::engine::resume(unsigned number) {
  worker_state& w = workers_[number];
  w.waiting = false;
  running_ = number;
  if (options_.measure) w.measured = std::chrono::steady_clock::now();
  simt::detail::fiber::jump(main_, w.thread, true);
  if (w.exception) std::rethrow_exception(w.exception);
}

// ---- network ------------------------------------------------------------------------------------

/// When `size` bytes sent at `time` arrive: not before what was sent earlier between the two nodes.
double simulation::engine::arrival_time(node_id from, node_id to, double time, double size) {
  const double part = std::uniform_real_distribution<double>(0, 1)(random_);
  const double at = time + options_.latency + part * options_.jitter + size / options_.bandwidth;
  return last_arrivals_.add(from, to, at, result_.seconds);
}

/// Sends a message to the next hop on its route, or directly from worker to worker.
void simulation::engine::post(node_id from, double time, message m) {
  const bool direct = shape_.is_worker(from) && shape_.is_worker(m.to);
  const node_id to = direct ? m.to : shape_.next_hop(from, m.to);
  ++result_.messages;
  const double size = 40 + 8.0 * static_cast<double>(m.body.size());
  events_.push({arrival_time(from, to, time, size), next_event_++, to,
                std::make_unique<message>(std::move(m))});
}

void simulation::engine::post_all(node_id from, double time, std::vector<message> all) {
  for (message& m : all) post(from, time, std::move(m));
}

void simulation::engine::deliver(event e) {
  if (shape_.is_worker(e.at)) {
    const unsigned number = shape_.worker_number(e.at);
    worker_state& w = workers_[number];
    w.inbox.push_back(std::move(*e.m));
    if (!w.started || !w.waiting) return;
    w.time = std::max(w.time, e.time);
    return resume(number);
  }
  const double start = std::max(e.time, busy_until_[e.at]);
  result_.queued += start - e.time;
  result_.longest_queue = std::max(result_.longest_queue, start - e.time);
  busy_until_[e.at] = start + options_.service;
  ++received_[e.at];
  ++result_.scheduler_messages;
  std::vector<message> out;
  schedulers_[e.at]->receive(std::move(*e.m), out);
  post_all(e.at, busy_until_[e.at], std::move(out));
}

// ---- event loop ---------------------------------------------------------------------------------

void simulation::engine::run(const std::function<void(cluster::worker&)>& worker_main) {
  worker_main_ = &worker_main;
  struct restore {
    engine* outer;
    ~restore() { current_ = outer; }
  } restore_current{std::exchange(current_, this)};
  for (const auto& s : schedulers_) post_all(s->self(), 0, s->start());
  for (unsigned i = 0; i < options_.workers; ++i) {
    workers_[i].started = true;
    resume(i);
  }
  while (!events_.empty()) {
    event e = std::move(const_cast<event&>(events_.top()));
    events_.pop();
    result_.seconds = e.time;
    deliver(std::move(e));
    ++result_.events;
    if (owner_.after_event) owner_.after_event(result_.events);
  }
  for (const worker_state& w : workers_)
    if (!w.ended) report_deadlock();
  for (node_id n = 0; n < shape_.schedulers(); ++n)
    result_.busiest_scheduler = std::max(result_.busiest_scheduler, received_[n]);
  add_worker_sums();
}

void simulation::engine::add_worker_sums() {
  for (const worker_state& w : workers_) {
    const worker_statistics& s = w.statistics;
    worker_statistics& sum = result_.workers;
    sum.calls += s.calls;
    sum.messages += s.messages;
    sum.allocations += s.allocations;
    sum.from_leases += s.from_leases;
    sum.bytes_sent += s.bytes_sent;
    sum.waited_for_schedulers += s.waited_for_schedulers;
    sum.waited_for_workers += s.waited_for_workers;
  }
}

void simulation::engine::report_deadlock() const {
  std::string names;
  unsigned count = 0;
  for (unsigned i = 0; i < options_.workers; ++i)
    if (!workers_[i].ended && ++count <= 8)
      names += (names.empty() ? "" : ", ") + std::to_string(i);
  throw error("deadlock: no message is in transit, and " + std::to_string(count) +
              (count == 1 ? " worker waits: " : " workers wait: ") + names +
              (count > 8 ? ", ..." : ""));
}

std::string simulation::engine::check_invariants() const {
  std::uint64_t remote_children = 0, with_remote_parent = 0;
  for (const auto& s : schedulers_) {
    if (std::string broken = s->check_invariants(); !broken.empty()) return broken;
    remote_children += s->remote_children();
    with_remote_parent += s->regions_with_remote_parent();
  }
  if (remote_children != with_remote_parent)
    return "there are " + std::to_string(remote_children) + " remote children, but " +
           std::to_string(with_remote_parent) + " regions with a remote parent";
  for (node_id n = 1; n < shape_.schedulers(); ++n)
    if (schedulers_[shape_.parent(n)]->pages().pages_of(n) != schedulers_[n]->pages().pages())
      return "the page tables of scheduler " + std::to_string(n) + " and its parent disagree";
  const std::uint64_t pages = schedulers_[0]->pages().pages();
  return pages == options_.capacity / default_geometry.page ? "" : "the top scheduler lost pages";
}

}  // namespace quarry::cluster
