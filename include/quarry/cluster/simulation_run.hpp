// SPDX-License-Identifier: Apache-2.0
#pragma once
/// simulation: how it goes on from event to event. Part of simulation.hpp.

#include <quarry/cluster/simulation.hpp>

#if QUARRY_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace quarry::cluster {

inline simulation::simulation(const simulation_options& options)
    : options_(options),
      shape_(shape::for_workers(options.workers, options.tree)),
      random_(options.seed),
      busy_until_(shape_.schedulers()),
      received_(shape_.schedulers()),
      workers_(options.workers) {
  scheduler_options so;
  so.room = options.room;
  so.plenty = options.plenty;
  so.fault = options.fault;
  options_.worker.fault = options.fault;
  for (node n = 0; n < shape_.schedulers(); ++n)
    schedulers_.push_back(std::make_unique<scheduler>(shape_, n, so));
  void* memory = ::mmap(nullptr, stack_stride() * options.workers, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw out_of_memory("no memory for the stacks of the workers");
  stacks_ = static_cast<char*>(memory);
  if (!options.isolated)
    room_ = address_range(reinterpret_cast<void*>(default_base), options.room);  // NOLINT
  for (unsigned i = 0; i < options.workers; ++i) {
    workers_[i].connection = std::make_unique<sim_link>(*this, i);
    if (options.isolated)
      workers_[i].memory = address_range(options.room, address_range::system_page);
    char* bottom = stacks_ + i * stack_stride();
    // A guard costs a mapping, and a process may have some 65,000: the first workers have one.
    if (i < 4096) (void)::mprotect(bottom, simt::detail::guard_bytes, PROT_NONE);
    workers_[i].thread.make(bottom + simt::detail::guard_bytes, i, &simulation::enter, options.stack);
  }
  main_.adopt_thread();
}

// ---- workers ------------------------------------------------------------------------------------

inline void simulation::enter() {
  simulation& s = *here_;
  const unsigned number = s.running_;
  s.worker_life(number);
  s.workers_[number].ended = true;
  for (;;) simt::detail::fiber::jump(s.workers_[number].thread, s.main_, true);
}

inline void simulation::worker_life(unsigned number) {
  worker_state& me = workers_[number];
  try {
    cluster::worker w(*me.connection, options_.worker);
    try {
      (*worker_main_)(w);
    } catch (...) {
      me.fault = std::current_exception();
    }
    if (!me.fault) result_.left = w.finish();
    me.statistics = w.statistics();
  } catch (...) {
    if (!me.fault) me.fault = std::current_exception();
  }
}

inline void simulation::resume(unsigned number) {
  worker_state& w = workers_[number];
  w.waiting = false;
  running_ = number;
  if (options_.measure) w.seen = std::chrono::steady_clock::now();
  simt::detail::fiber::jump(main_, w.thread, true);
  if (w.fault) std::rethrow_exception(w.fault);
}

// ---- the network --------------------------------------------------------------------------------

/// When something sent now arrives: not before what was sent earlier between the two.
inline double simulation::arrival(node from, node to, double time, double size) {
  const double part = std::uniform_real_distribution<double>(0, 1)(random_);
  double at = time + options_.latency + part * options_.jitter + size / options_.bandwidth;
  double& last = last_arrival_[std::uint64_t{from} << 32 | to];
  at = std::max(at, last);
  last = at;
  return at;
}

inline void simulation::post(node from, double time, message m) {
  const bool direct = shape_.is_worker(from) && shape_.is_worker(m.to);
  const node to = direct ? m.to : shape_.next_hop(from, m.to);
  ++result_.messages;
  const double size = 64 + 8.0 * static_cast<double>(m.words.size());
  events_.push(
      {arrival(from, to, time, size), next_event_++, to, std::make_unique<message>(std::move(m))});
}

inline void simulation::deliver(event e) {
  if (shape_.is_worker(e.at)) {
    const unsigned number = shape_.worker_number(e.at);
    worker_state& w = workers_[number];
    if (e.m) w.inbox.push_back(std::move(*e.m));
    if (!w.begun || !w.waiting) return;
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
  for (message& m : out) post(e.at, busy_until_[e.at], std::move(m));
}

inline simulation_result simulation::run(const std::function<void(cluster::worker&)>& worker_main) {
  worker_main_ = &worker_main;
  simulation* const before = std::exchange(here_, this);
  struct restore {
    simulation* to;
    ~restore() { here_ = to; }
  } restore_here{before};
  for (unsigned i = 0; i < options_.workers; ++i) {
    workers_[i].begun = true;
    resume(i);
  }
  while (!events_.empty()) {
    event e = std::move(const_cast<event&>(events_.top()));
    events_.pop();
    result_.seconds = e.time;
    deliver(std::move(e));
    ++result_.events;
    if (after_event) after_event(result_.events);
  }
  for (const worker_state& w : workers_)
    if (!w.ended) report_standstill();
  for (node n = 0; n < shape_.schedulers(); ++n)
    result_.busiest_scheduler = std::max(result_.busiest_scheduler, received_[n]);
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
  return result_;
}

inline void simulation::report_standstill() const {
  std::string names;
  unsigned count = 0;
  for (unsigned i = 0; i < options_.workers; ++i)
    if (!workers_[i].ended && ++count <= 8)
      names += (names.empty() ? "" : ", ") + std::to_string(i);
  throw error("no message is on its way, and " + std::to_string(count) +
              (count == 1 ? " worker waits: " : " workers wait: ") + names +
              (count > 8 ? ", ..." : ""));
}

inline void simulation::release_stacks() {
  const std::size_t size = stack_stride() * options_.workers;
#if QUARRY_ASAN
  // What workers that were given up hold is no leak: their stacks stay, for the leak check to see.
  for (const worker_state& w : workers_)
    if (w.begun && !w.ended) {
      __lsan_register_root_region(stacks_, size);
      return;
    }
  __asan_unpoison_memory_region(stacks_, size);
#endif
  ::munmap(stacks_, size);
}

inline std::string simulation::check_invariants() const {
  std::uint64_t pages = 0, below = 0, adopted = 0;
  for (const auto& s : schedulers_) {
    below += s->remote_children();
    adopted += s->adopted();
    if (std::string fault = s->check_invariants(); !fault.empty()) return fault;
    if (s->self() == 0) pages = s->pages().pages();
  }
  if (below != adopted) return "parents and children at different schedulers do not add up";
  for (node n = 1; n < shape_.schedulers(); ++n)
    if (schedulers_[shape_.parent(n)]->pages().pages_of(n) != schedulers_[n]->pages().pages())
      return "the page tables of scheduler " + std::to_string(n) + " and its parent disagree";
  return pages == options_.room / default_geometry.page ? "" : "pages are lost at the top";
}

// ---- bytes --------------------------------------------------------------------------------------

inline std::unique_ptr<transfer> simulation::sim_link::send_bytes(
    node to, std::span<const packed_range> from) {
  std::vector<std::byte> bytes;
  double size = 0;
  for (const packed_range& r : from) {
    size += static_cast<double>(r.size);
    if (sim_->options_.isolated)
      bytes.insert(bytes.end(), local(r.address), local(r.address) + r.size);
  }
  worker_state& other = sim_->workers_[sim_->shape_.worker_number(to)];
  const double at = sim_->arrival(self(), to, me().time, size);
  me().time = std::max(me().time, at - sim_->options_.latency);
  // The bytes wait at the receiver; the event tells it when they may be looked at.
  other.bytes.push_back({self(), at, std::move(bytes)});
  message arrived;
  arrived.what = verb::answer;  // of nothing: it only wakes the receiver
  arrived.ticket = ~std::uint64_t{0};
  arrived.from = self();
  arrived.to = to;
  sim_->events_.push({at, sim_->next_event_++, to, std::make_unique<message>(std::move(arrived))});
  return std::make_unique<sim_transfer>();
}

inline bool simulation::sim_transfer::finished() {
  if (sim_ == nullptr) return true;
  worker_state& me = sim_->workers_[at_];
  const auto it = std::find_if(me.bytes.begin(), me.bytes.end(),
                               [&](const auto& b) { return b.from == from_; });
  if (it == me.bytes.end() || it->arrival > me.time) return false;
  const std::byte* next = it->contents.data();
  if (sim_->options_.isolated)
    for (const packed_range& r : to_) {
      std::memcpy(me.connection->local(r.address), next, r.size);
      next += r.size;
    }
  me.bytes.erase(it);
  sim_ = nullptr;
  return true;
}

}  // namespace quarry::cluster
