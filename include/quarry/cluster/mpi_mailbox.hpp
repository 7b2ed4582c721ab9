// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_mailbox: messages between processes, as words on a communicator of their own.
///
///   wire   | what, status, hops | from, to | ticket | a | b | c | words ... |     64-bit words
///
/// post: starts a send that MPI carries out when it can and keeps its words until then; it never
/// waits for the receiver. take: matches what has arrived from anybody, and gives out the first
/// message that is here whole and that none from the same sender came before.
///
/// Invariant: messages of one sender are given out in the order in which it posted them, for MPI
/// matches them in that order, and a message that is here whole waits for those before it.
/// Progress: every call moves all sends and receives on; nothing here waits.

#include <quarry/cluster/message.hpp>
#include <quarry/cluster/mpi_header.hpp>

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>
#include <vector>

namespace quarry::cluster {

inline constexpr std::size_t words_in_head = 6;

inline void encode(const message& m, std::vector<std::uint64_t>& wire) {
  wire.resize(words_in_head + m.words.size());
  wire[0] = static_cast<std::uint64_t>(m.what) | static_cast<std::uint64_t>(m.status) << 8 |
            std::uint64_t{m.hops} << 16;
  wire[1] = std::uint64_t{m.from} | std::uint64_t{m.to} << 32;
  wire[2] = m.ticket;
  wire[3] = m.a;
  wire[4] = m.b;
  wire[5] = m.c;
  std::copy(m.words.begin(), m.words.end(), wire.begin() + words_in_head);
}

/// Requires: what encode made.
inline void decode(const std::vector<std::uint64_t>& wire, message& m) {
  m.what = static_cast<verb>(wire[0] & 0xff);
  m.status = static_cast<region_status>(wire[0] >> 8 & 0xff);
  m.hops = static_cast<decltype(m.hops)>(wire[0] >> 16);
  m.from = static_cast<node>(wire[1]);
  m.to = static_cast<node>(wire[1] >> 32);
  m.ticket = wire[2];
  m.a = wire[3];
  m.b = wire[4];
  m.c = wire[5];
  m.words.assign(wire.begin() + words_in_head, wire.end());
}

class mpi_mailbox {
 public:
  /// Collective: all of `world` make theirs.
  explicit mpi_mailbox(MPI_Comm world) { MPI_Comm_dup(world, &comm_); }
  mpi_mailbox(const mpi_mailbox&) = delete;
  mpi_mailbox& operator=(const mpi_mailbox&) = delete;
  /// Collective. Requires all_sent(), and that nothing is on its way to here.
  ~mpi_mailbox() { MPI_Comm_free(&comm_); }

  void post(node to, const message& m) {
    std::list<parcel> one = empty_parcel();
    parcel& p = one.front();
    encode(m, p.wire);
    MPI_Isend(p.wire.data(), static_cast<int>(p.wire.size()), MPI_UINT64_T, static_cast<int>(to), 0,
              comm_, &p.request);
    std::list<parcel>& where = has_ended(p) ? spare_ : leaving_;
    where.splice(where.end(), one);
  }

  bool take(message& m) {
    match_arrivals();
    for (auto p = arriving_.begin(); p != arriving_.end(); ++p) {
      if (!has_ended(*p)) continue;
      const bool first = std::none_of(arriving_.begin(), p,
                                      [&](const parcel& before) { return before.peer == p->peer; });
      if (!first) continue;
      decode(p->wire, m);
      spare_.splice(spare_.end(), arriving_, p);
      return true;
    }
    return false;
  }

  /// Moves sends on. Whether one ended.
  bool progress() {
    bool moved = false;
    for (auto p = leaving_.begin(); p != leaving_.end();) {
      const auto next = std::next(p);
      if (has_ended(*p)) {
        spare_.splice(spare_.end(), leaving_, p);
        moved = true;
      }
      p = next;
    }
    return moved;
  }
  bool all_sent() const { return leaving_.empty(); }
  /// Nothing is half sent or half received.
  bool is_quiet() const { return leaving_.empty() && arriving_.empty(); }

 private:
  struct parcel {
    std::vector<std::uint64_t> wire;
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = MPI_PROC_NULL;
  };

  static constexpr unsigned most_matched = 64;  // in one call, so that take returns
  static constexpr std::size_t most_spare_words = 4096;

  static bool has_ended(parcel& p) {
    if (p.request == MPI_REQUEST_NULL) return true;
    int ended = 0;
    MPI_Test(&p.request, &ended, MPI_STATUS_IGNORE);
    return ended != 0;
  }

  std::list<parcel> empty_parcel() {
    std::list<parcel> one;
    if (spare_.empty())
      one.emplace_back();
    else
      one.splice(one.end(), spare_, spare_.begin());
    // One long message does not keep its memory for ever.
    if (one.front().wire.capacity() > most_spare_words) one.front().wire = {};
    return one;
  }

  void match_arrivals() {
    for (unsigned i = 0; i < most_matched; ++i) {
      int here = 0;
      MPI_Message found;
      MPI_Status status;
      MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &here, &found, &status);
      if (here == 0) return;
      int count = 0;
      MPI_Get_count(&status, MPI_UINT64_T, &count);
      arriving_.splice(arriving_.end(), empty_parcel());
      parcel& p = arriving_.back();
      p.wire.resize(static_cast<std::size_t>(count));
      p.peer = status.MPI_SOURCE;
      MPI_Imrecv(p.wire.data(), count, MPI_UINT64_T, &found, &p.request);
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::list<parcel> leaving_;
  std::list<parcel> arriving_;  // in the order in which MPI matched them
  std::list<parcel> spare_;
};

}  // namespace quarry::cluster
