// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The baseline for list_exchange.hpp: the same lists, read and written node by node, as languages
/// with global pointers do.
///
///   one-sided       MPI_Get a node, modify it, MPI_Put it, in a window over the owner's memory;
///                   this corresponds to upc_memget and upc_memput
///   request-reply   one message requests a node or returns one; the owner polls for requests while
///                   it works; this corresponds to UPC over MPI messages (Lyberis et al. 2012)
///
/// A pointer is the index of a node in its owner's array. The nodes are placed in the array by a
/// random permutation, so that traversing the list is not a sequential scan.

#include "apps/list_exchange/list_exchange.hpp"

#include <quarry/cluster/detail/mpi.hpp>

#include <numeric>
#include <random>
#include <vector>

namespace quarry::apps {

using numbered_node = list_node<std::uint64_t>;
static_assert(sizeof(numbered_node) == 256);
inline constexpr std::uint64_t no_more_nodes = ~std::uint64_t{0};

enum class node_transport { one_sided, request_reply };

namespace detail {

inline unsigned rank_in(MPI_Comm workers) {
  int rank = 0;
  MPI_Comm_rank(workers, &rank);
  return static_cast<unsigned>(rank);
}
inline unsigned size_of(MPI_Comm workers) {
  int size = 0;
  MPI_Comm_size(workers, &size);
  return static_cast<unsigned>(size);
}

/// A list in its owner's memory. `first` is the index of its head.
struct numbered_list {
  std::vector<numbered_node> nodes;
  std::uint64_t first = no_more_nodes;

  numbered_list(unsigned owner, std::size_t count) : nodes(count) {
    std::vector<std::uint64_t> place(count);
    std::iota(place.begin(), place.end(), std::uint64_t{0});
    std::shuffle(place.begin(), place.end(), std::mt19937_64(owner + 1));
    for (std::size_t i = count; i-- > 0;) {
      numbered_node& n = nodes[place[i]];
      fill(n, owner, i);
      n.next = std::exchange(first, place[i]);
    }
  }
};

/// One-sided access in a passive-target epoch that lasts as long as the object.
class one_sided {
 public:
  one_sided(MPI_Comm workers, numbered_list& list) {
    // Some MPI builds cannot create windows on some transports. Report an error instead of aborting
    // all ranks.
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(workers, &before);
    MPI_Comm_set_errhandler(workers, MPI_ERRORS_RETURN);
    const int outcome = MPI_Win_create(
        list.nodes.data(), static_cast<MPI_Aint>(list.nodes.size() * sizeof(numbered_node)),
        sizeof(numbered_node), MPI_INFO_NULL, workers, &window_);
    MPI_Comm_set_errhandler(workers, before);
    if (before != MPI_ERRORS_ARE_FATAL && before != MPI_ERRORS_RETURN) MPI_Errhandler_free(&before);
    if (outcome != MPI_SUCCESS)
      throw error(
          "one-sided access: MPI_Win_create failed (with Open MPI, try mpirun --mca osc ^ucx)");
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  ~one_sided() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  one_sided(const one_sided&) = delete;
  one_sided& operator=(const one_sided&) = delete;

  void change_list(unsigned peer, std::uint64_t first, unsigned me, list_exchange_result& result) {
    const int target = static_cast<int>(peer), bytes = sizeof(numbered_node);
    for (std::uint64_t at = first; at != no_more_nodes; ++result.nodes_changed) {
      numbered_node n;
      const auto place = static_cast<MPI_Aint>(at);
      MPI_Get(&n, bytes, MPI_BYTE, target, place, bytes, MPI_BYTE, window_);
      MPI_Win_flush(target, window_);
      change(n, me);
      MPI_Put(&n, bytes, MPI_BYTE, target, place, bytes, MPI_BYTE, window_);
      MPI_Win_flush(target, window_);
      at = n.next;
    }
  }
  void finish_stage() { MPI_Win_sync(window_); }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
};

/// Request-reply access. Both partners issue requests and serve the requests of the other. A worker
/// that has received its last reply sends `done`, and serves until it has received `done` itself.
class request_reply {
 public:
  request_reply(MPI_Comm workers, numbered_list& list) : workers_(workers), list_(&list) {}

  void change_list(unsigned peer, std::uint64_t first, unsigned me, list_exchange_result& result) {
    peer_ = static_cast<int>(peer);
    peer_done_ = false;
    for (std::uint64_t at = first; at != no_more_nodes; ++result.nodes_changed) {
      message m = request({get, at, {}});
      change(m.node, me);
      request({put, at, m.node});
      at = m.node.next;
    }
    const message last{done, 0, {}};
    MPI_Send(&last, sizeof last, MPI_BYTE, peer_, request_tag, workers_);
    while (!peer_done_) serve();
  }
  void finish_stage() {}

 private:
  enum kind : std::uint64_t { get, put, done };
  struct message {
    kind what;
    std::uint64_t index;
    numbered_node node;
  };
  static constexpr int request_tag = 1, reply_tag = 2;

  message request(const message& m) {
    message reply;
    MPI_Request pending;
    MPI_Irecv(&reply, sizeof reply, MPI_BYTE, peer_, reply_tag, workers_, &pending);
    MPI_Send(&m, sizeof m, MPI_BYTE, peer_, request_tag, workers_);
    for (int arrived = 0;;) {
      MPI_Test(&pending, &arrived, MPI_STATUS_IGNORE);
      if (arrived) return reply;
      serve();
    }
  }
  /// Serves one request of the partner if one has arrived.
  void serve() {
    int there = 0;
    MPI_Iprobe(peer_, request_tag, workers_, &there, MPI_STATUS_IGNORE);
    if (!there) return;
    message m;
    MPI_Recv(&m, sizeof m, MPI_BYTE, peer_, request_tag, workers_, MPI_STATUS_IGNORE);
    if (m.what == done) {
      peer_done_ = true;
      return;
    }
    if (m.what == get)
      m.node = list_->nodes[m.index];
    else
      list_->nodes[m.index] = m.node;
    MPI_Send(&m, sizeof m, MPI_BYTE, peer_, reply_tag, workers_);
  }

  MPI_Comm workers_;
  numbered_list* list_;
  int peer_ = 0;
  bool peer_done_ = false;
};

template <class Transport>
list_exchange_result exchange_by_node(MPI_Comm workers, const list_exchange_options& options) {
  const unsigned me = rank_in(workers), count = size_of(workers);
  list_exchange_result result;
  double since = MPI_Wtime();
  const auto charge = [&](double& to) {
    const double now = MPI_Wtime();
    to += now - std::exchange(since, now);
  };

  numbered_list list(me, options.nodes);
  charge(result.build.computation);
  std::vector<std::uint64_t> firsts(count);
  MPI_Allgather(&list.first, 1, MPI_UINT64_T, firsts.data(), 1, MPI_UINT64_T, workers);
  if (count > 1) {  // some MPI builds cannot create a window for one rank
    Transport transport(workers, list);
    MPI_Barrier(workers);
    since = MPI_Wtime();
    for (unsigned round = 0; round < options.rounds; ++round)
      for (unsigned stage = 0; stage < pairing_stages(count); ++stage) {
        if (const unsigned peer = partner(me, stage, count); peer != no_partner)
          transport.change_list(peer, firsts[peer], me, result);
        MPI_Barrier(workers);
        transport.finish_stage();
        options.report(++result.stages, count);
      }
    charge(result.exchange.workers);
  }

  result.correct = true;
  std::size_t number = 0;
  for (std::uint64_t at = list.first; at != no_more_nodes; at = list.nodes[at].next)
    result.correct =
        has_expected_words(list.nodes[at], me, number++, count, options.rounds) && result.correct;
  result.correct = result.correct && number == options.nodes;
  return result;
}

}  // namespace detail

/// A communicator of the workers of a cluster under mpirun, in order of their numbers. The
/// constructor is collective among the workers; schedulers do not take part.
class worker_communicator {
 public:
  explicit worker_communicator(cluster::worker& w) {
    const cluster::shape& tree = w.tree();
    int range[1][3] = {
        {static_cast<int>(tree.worker(0)), static_cast<int>(tree.worker(w.count() - 1)), 1}};
    MPI_Group world, workers;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &workers);
    MPI_Comm_create_group(MPI_COMM_WORLD, workers, 0, &comm_);
    MPI_Group_free(&workers);
    MPI_Group_free(&world);
  }
  ~worker_communicator() { MPI_Comm_free(&comm_); }
  worker_communicator(const worker_communicator&) = delete;
  worker_communicator& operator=(const worker_communicator&) = delete;
  operator MPI_Comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Runs the exchange node by node. Collective among the workers. `exchange` includes the
/// modification of the nodes, which happens between the two transfers of a node.
inline list_exchange_result run(MPI_Comm workers, node_transport how,
                                const list_exchange_options& options) {
  return how == node_transport::one_sided
             ? detail::exchange_by_node<detail::one_sided>(workers, options)
             : detail::exchange_by_node<detail::request_reply>(workers, options);
}

}  // namespace quarry::apps
