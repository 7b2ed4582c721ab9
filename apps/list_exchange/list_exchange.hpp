// SPDX-License-Identifier: Apache-2.0
#pragma once
/// List exchange (Lyberis et al. 2012, section 6.5): linked lists move between workers as regions.
///
/// Every worker builds a linked list in a region of its own. In each stage of a round-robin
/// schedule, two partners exchange their regions, modify every node of the list they received, and
/// return it. A region keeps its addresses when it moves, so the pointers in the list stay valid.
/// mpi.hpp moves the same lists node by node, as the baseline.
///
/// Check: the schedule determines the order of the modifications, so the owner of a list computes
/// the expected value of every word.

#include "apps/common/mailbox.hpp"
#include "apps/common/pairing.hpp"
#include "apps/common/phases.hpp"

#include <array>
#include <cstdint>

namespace quarry::apps {

struct list_exchange_options {
  std::size_t nodes = 1000;  // nodes per list
  unsigned rounds = 1;       // repetitions of the whole schedule
  step_listener on_stage = {};

  /// Calls on_stage after a stage. `done`: the stages of all rounds that are finished.
  void report(std::uint64_t done, unsigned workers) const {
    if (on_stage) on_stage("stage", done, std::uint64_t{rounds} * pairing_stages(workers));
  }
};

struct list_exchange_result {
  time_shares build;
  time_shares exchange;  // transfers in both directions
  time_shares change;    // modification of received nodes
  std::uint64_t stages = 0;
  std::uint64_t nodes_changed = 0;
  bool correct = false;  // this worker's own list, after all stages
};

/// A node of 256 bytes, as in the paper. `Next` is a pointer or an index.
template <class Next>
struct list_node {
  Next next;
  std::array<std::uint64_t, 31> words;
};
using linked_node = list_node<void*>;
static_assert(sizeof(linked_node) == 256);

/// The initial words of a node, and the modification that a worker applies to each word.
constexpr std::uint64_t first_word(unsigned worker, std::size_t node, std::size_t word) {
  return (std::uint64_t{worker} << 40 | std::uint64_t{node} << 5 | word) * 0x9e3779b97f4a7c15;
}
constexpr std::uint64_t changed_word(std::uint64_t word, unsigned by) {
  return word * 6364136223846793005 + by + 1;
}
template <class Next>
void fill(list_node<Next>& n, unsigned worker, std::size_t number) {
  for (std::size_t i = 0; i < n.words.size(); ++i) n.words[i] = first_word(worker, number, i);
}
template <class Next>
void change(list_node<Next>& n, unsigned by) {
  for (std::uint64_t& word : n.words) word = changed_word(word, by);
}
/// Returns whether a node holds the words that its owner expects after all rounds.
template <class Next>
bool has_expected_words(const list_node<Next>& n, unsigned owner, std::size_t number,
                        unsigned workers, unsigned rounds) {
  list_node<Next> expected = n;
  fill(expected, owner, number);
  for (unsigned round = 0; round < rounds; ++round)
    for (unsigned stage = 0; stage < pairing_stages(workers); ++stage)
      if (const unsigned peer = partner(owner, stage, workers); peer != no_partner)
        change(expected, peer);
  return expected.words == n.words;
}

namespace detail {

/// Visits the nodes of a list that this worker owns or has received.
template <class Visit>
void for_each_node(cluster::worker& w, void* first, Visit visit) {
  for (void* p = first; p != nullptr;) {
    linked_node& n = *w.local(static_cast<linked_node*>(p));
    p = n.next;
    visit(n);
  }
}

}  // namespace detail

inline list_exchange_result run(cluster::worker& w, const list_exchange_options& options) {
  const unsigned me = w.number();
  list_exchange_result result;
  mailbox mail(w);
  phase_clock clock(w);

  const cluster::rid mine =
      value_or_throw(w.create_region(cluster::root, 0), "create the region for the list");
  void* first = nullptr;
  for (std::size_t i = options.nodes; i-- > 0;) {
    void* p = value_or_throw(w.allocate(mine, sizeof(linked_node)), "allocate a node");
    linked_node& n = *w.local(static_cast<linked_node*>(p));
    n.next = std::exchange(first, p);
    fill(n, me, i);
  }
  clock.charge(result.build);
  const std::vector<void*> heads = mail.all_gather(first);
  w.barrier();
  time_shares preparation;
  clock.charge(preparation);

  for (unsigned round = 0; round < options.rounds; ++round)
    for (unsigned stage = 0; stage < pairing_stages(w.count()); ++stage) {
      if (const unsigned peer = partner(me, stage, w.count()); peer != no_partner) {
        cluster::rid theirs = cluster::root;
        throw_on_failure(w.exchange(peer, {&mine, 1}, {&theirs, 1}), "exchange lists");
        clock.charge(result.exchange);
        detail::for_each_node(w, heads[peer], [&](linked_node& n) {
          change(n, me);
          ++result.nodes_changed;
        });
        clock.charge(result.change);
        cluster::rid back = mine;
        throw_on_failure(w.exchange(peer, {&theirs, 1}, {&back, 1}), "return lists");
      }
      w.barrier();
      clock.charge(result.exchange);
      options.report(++result.stages, w.count());
    }

  std::size_t number = 0;
  bool correct = true;
  detail::for_each_node(w, first, [&](const linked_node& n) {
    correct = correct && has_expected_words(n, me, number++, w.count(), options.rounds);
  });
  result.correct = correct && number == options.nodes;
  throw_on_failure(w.destroy_region(mine), "free the list");
  mail.close();
  return result;
}

}  // namespace quarry::apps
