// SPDX-License-Identifier: Apache-2.0
// simulation: a worker's connection to the simulated network, and the bytes of objects.
#include "cluster/simulation/engine.hpp"

#include <algorithm>
#include <cstring>

namespace quarry::cluster {

using namespace detail;

void simulation::sim_link::post(message m) {
  account_computation();
  me().time += engine_->options_.call;
  engine_->post(self(), me().time, std::move(m));
}

bool simulation::sim_link::try_receive(message& m) {
  if (me().inbox.empty()) return false;
  account_computation();
  me().time += engine_->options_.call;
  m = std::move(me().inbox.front());
  me().inbox.pop_front();
  return true;
}

void simulation::sim_link::idle() {
  account_computation();
  me().waiting = true;
  simt::detail::fiber::jump(me().thread, engine_->main_, true);
}

std::ptrdiff_t simulation::sim_link::local_offset() const {
  if (!engine_->options_.isolated) return 0;
  return static_cast<std::ptrdiff_t>(address_of(me().memory.base()) - default_base);
}

void simulation::sim_link::discard(packed_range range) {
  if (engine_->options_.isolated) std::memset(local(range.address), 0, range.size);
}

double simulation::sim_link::now() const {
  const_cast<sim_link*>(this)->account_computation();
  return me().time;
}

void simulation::sim_link::account_computation() {
  if (!engine_->options_.measure) return;
  const auto now = std::chrono::steady_clock::now();
  me().time += std::chrono::duration<double>(now - me().measured).count();
  me().measured = now;
}

// ---- bytes --------------------------------------------------------------------------------------

std::unique_ptr<transfer> simulation::sim_link::send_bytes(node_id to,
                                                           std::span<const packed_range> from) {
  std::vector<std::byte> bytes;
  double size = 0;
  for (const packed_range& r : from) {
    size += static_cast<double>(r.size);
    if (engine_->options_.isolated)
      bytes.insert(bytes.end(), local(r.address), local(r.address) + r.size);
  }
  engine::worker_state& receiver = engine_->workers_[engine_->shape_.worker_number(to)];
  const double arrival = engine_->arrival_time(self(), to, me().time, size);
  me().time = std::max(me().time, arrival - engine_->options_.latency);
  // The bytes are stored at the receiver at once; it reads them after their arrival time.
  receiver.bytes.push_back({self(), arrival, std::move(bytes)});
  message wake_up = make_message(to, acknowledgement{}, ~std::uint64_t{0});  // of no request
  wake_up.from = self();
  engine_->events_.push(
      {arrival, engine_->next_event_++, to, std::make_unique<message>(std::move(wake_up))});
  return std::make_unique<sim_transfer>();
}

std::unique_ptr<transfer> simulation::sim_link::receive_bytes(node_id from,
                                                              std::span<const packed_range> to) {
  return std::make_unique<sim_transfer>(*engine_, number_, from,
                                        std::vector<packed_range>(to.begin(), to.end()));
}

bool simulation::sim_transfer::finished() {
  if (engine_ == nullptr) return true;
  engine::worker_state& me = engine_->workers_[at_];
  const auto it = std::find_if(me.bytes.begin(), me.bytes.end(),
                               [&](const auto& batch) { return batch.from == from_; });
  if (it == me.bytes.end() || it->arrival > me.time) return false;
  const std::byte* next = it->contents.data();
  if (engine_->options_.isolated)
    for (const packed_range& r : to_) {
      std::memcpy(me.connection->local(r.address), next, r.size);
      next += r.size;
    }
  me.bytes.erase(it);
  engine_ = nullptr;
  return true;
}

}  // namespace quarry::cluster
