// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mailbox: point-to-point messages and reductions between workers, for arrays of trivially
/// copyable values.
///
///   message   | count | value 0 | value 1 | ...      an object in the sender's own region
///
/// send() transfers the object; receive() learns its address and copies the values out. A send
/// blocks until the peer receives, so in swap() the worker with the lower number sends first.
///
/// Lifetime: the sender frees a message when a later message arrives from the same peer. Before
/// that the peer may still be reading the object, if the workers share memory.

#include "apps/common/status.hpp"

#include <quarry/cluster/worker.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quarry::apps {

class mailbox {
 public:
  explicit mailbox(cluster::worker& w)
      : worker_(&w),
        region_(
            value_or_throw(w.create_region(cluster::root, 0), "create the region for messages")) {}

  template <class T>
  void send(unsigned peer, std::span<const T> values);
  template <class T>
  std::vector<T> receive(unsigned peer);
  template <class T>
  std::vector<T> swap(unsigned peer, std::span<const T> values) {
    if (worker_->number() < peer) send(peer, values);
    std::vector<T> theirs = receive<T>(peer);
    if (worker_->number() > peer) send(peer, values);
    return theirs;
  }

  /// Combines the values of a group element by element, by recursive doubling. The groups are runs
  /// of `size` workers with consecutive numbers.
  /// Requires: `size` is a power of two; combine(a, b) == combine(b, a).
  /// Returns: the same values, bit for bit, at every worker of the group.
  template <class T, class Combine>
  std::vector<T> reduce(unsigned size, std::vector<T> values, Combine combine) {
    for (unsigned distance = 1; distance < size; distance *= 2) {
      const std::vector<T> theirs = swap(worker_->number() ^ distance, std::span<const T>(values));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = combine(values[i], theirs[i]);
    }
    return values;
  }
  template <class T>
  std::vector<T> sum(unsigned size, std::vector<T> values) {
    return reduce(size, std::move(values), [](const T& a, const T& b) { return a + b; });
  }
  /// Returns the values of all workers, in no particular order.
  /// Requires: the number of workers is a power of two.
  template <class T>
  std::vector<T> gather(std::vector<T> values) {
    for (unsigned distance = 1; distance < worker_->count(); distance *= 2) {
      const std::vector<T> theirs = swap(worker_->number() ^ distance, std::span<const T>(values));
      values.insert(values.end(), theirs.begin(), theirs.end());
    }
    return values;
  }
  /// Returns the values of all workers, by worker number. Collective. The values travel along a
  /// binomial tree to worker 0 and back: 2 (n - 1) messages for n workers.
  template <class T>
  std::vector<T> all_gather(const T& mine);

  /// Frees all messages. Collective. Requires: every message sent has been received.
  void close() {
    worker_->barrier();
    throw_on_failure(worker_->destroy_region(region_), "free the region for messages");
  }

 private:
  static constexpr std::size_t header = 16;

  cluster::worker* worker_;
  cluster::rid region_;
  std::unordered_map<unsigned, std::vector<void*>> sent_;  // by peer, which may still read them
};

template <class T>
void mailbox::send(unsigned peer, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= header);
  void* object = value_or_throw(worker_->allocate(region_, header + values.size_bytes()),
                                "allocate a message");
  std::byte* bytes = worker_->local(static_cast<std::byte*>(object));
  const std::uint64_t count = values.size();
  std::memcpy(bytes, &count, sizeof count);
  if (count != 0) std::memcpy(bytes + header, values.data(), values.size_bytes());
  throw_on_failure(worker_->send(peer, {}, {&object, 1}), "send a message");
  sent_[peer].push_back(object);
}

template <class T>
std::vector<T> mailbox::receive(unsigned peer) {
  void* object = nullptr;
  throw_on_failure(worker_->receive(peer, {}, {&object, 1}), "receive a message");
  for (void* message : std::exchange(sent_[peer], {}))
    throw_on_failure(worker_->deallocate(message), "free a message");
  const std::byte* bytes = worker_->local(static_cast<std::byte*>(object));
  std::uint64_t count = 0;
  std::memcpy(&count, bytes, sizeof count);
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), bytes + header, count * sizeof(T));
  return values;
}

template <class T>
std::vector<T> mailbox::all_gather(const T& mine) {
  const unsigned me = worker_->number(), count = worker_->count();
  std::vector<T> values(1, mine);  // of the workers from this one on: the subtree below it
  unsigned subtree = 1;
  for (; subtree < count && me % (2 * subtree) == 0; subtree *= 2)
    if (me + subtree < count) {
      const std::vector<T> theirs = receive<T>(me + subtree);
      values.insert(values.end(), theirs.begin(), theirs.end());
    }
  if (me != 0) {
    send(me - subtree, std::span<const T>(values));
    values = receive<T>(me - subtree);
  }
  for (subtree /= 2; subtree != 0; subtree /= 2)
    if (me + subtree < count) send(me + subtree, std::span<const T>(values));
  return values;
}

}  // namespace quarry::apps
