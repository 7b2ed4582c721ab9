// SPDX-License-Identifier: Apache-2.0
#pragma once
/// postbox: what workers tell each other beside regions, as arrays of plain values.
///
///   object   | count | value 0 | value 1 | ...      in the sender's own region
///
/// A message is one object that is sent; the receiver learns its address, and copies the values
/// out. Sends wait for the receiver: of two that swap, the one with the smaller number sends first.
///
/// A message is freed when something later came from the same peer: until then the peer, where
/// workers share memory, may still be reading it.

#include "apps/common/must.hpp"

#include <quarry/cluster/worker.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::apps {

class postbox {
 public:
  explicit postbox(cluster::worker& w)
      : worker_(&w),
        region_(must(w.create_region(cluster::root, 0), "a region for messages")),
        sent_(w.count()) {}

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

  /// In groups of `size` workers, a power of two, with neighbouring numbers: combines the values of
  /// all, in pairs, quadruples, and so on. Requires: combine(a, b) == combine(b, a); then all have
  /// the same in the end, bit by bit.
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
  /// The values of all workers, in no particular order. Requires: their count is a power of two.
  template <class T>
  std::vector<T> gather(std::vector<T> values) {
    for (unsigned distance = 1; distance < worker_->count(); distance *= 2) {
      const std::vector<T> theirs = swap(worker_->number() ^ distance, std::span<const T>(values));
      values.insert(values.end(), theirs.begin(), theirs.end());
    }
    return values;
  }

  /// Collective: no message is on its way any more.
  void close() {
    worker_->barrier();
    must(worker_->destroy_region(region_), "to free the region for messages");
  }

 private:
  static constexpr std::size_t head = 16;

  cluster::worker* worker_;
  cluster::rid region_;
  std::vector<std::vector<void*>> sent_;  // by peer, perhaps not yet read there
};

template <class T>
void postbox::send(unsigned peer, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= head);
  void* object = must(worker_->allocate(region_, head + values.size_bytes()), "a message");
  std::byte* bytes = worker_->local(static_cast<std::byte*>(object));
  const std::uint64_t count = values.size();
  std::memcpy(bytes, &count, sizeof count);
  if (count != 0) std::memcpy(bytes + head, values.data(), values.size_bytes());
  must(worker_->send(peer, {}, {&object, 1}), "to send a message");
  sent_[peer].push_back(object);
}

template <class T>
std::vector<T> postbox::receive(unsigned peer) {
  void* object = nullptr;
  must(worker_->receive(peer, {}, {&object, 1}), "to receive a message");
  for (void* read : std::exchange(sent_[peer], {}))
    must(worker_->deallocate(read), "to free a message");
  const std::byte* bytes = worker_->local(static_cast<std::byte*>(object));
  std::uint64_t count = 0;
  std::memcpy(&count, bytes, sizeof count);
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), bytes + head, count * sizeof(T));
  return values;
}

}  // namespace quarry::apps
