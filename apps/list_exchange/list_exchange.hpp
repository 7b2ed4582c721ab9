// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Lists that change hands whole (Lyberis et al. 2012, section 6.5).
///
/// Every worker builds a linked list in a region of its own. In stages, pairs exchange their lists;
/// each changes all nodes of the other's and the lists go back. A list travels as its region: the
/// pointers in it are right wherever it is. list_exchange_mpi.hpp does the same node by node.
///
/// Check: a worker knows whom it met in which order, so it knows what every word must be.

#include "apps/common/pairing.hpp"
#include "apps/common/phases.hpp"
#include "apps/common/postbox.hpp"

#include <array>
#include <cstdint>

namespace quarry::apps {

struct list_exchange_options {
  std::size_t nodes = 1000;  // of each list
  unsigned rounds = 1;       // through all pairs
};

struct list_exchange_result {
  time_shares build;
  time_shares exchange;  // there and back
  time_shares change;    // of the nodes
  std::uint64_t stages = 0;
  std::uint64_t nodes_changed = 0;
  bool correct = false;  // the own list, after all stages
};

/// 256 bytes, as in the paper. Next: a pointer, or what stands for one.
template <class Next>
struct list_node {
  Next next;
  std::array<std::uint64_t, 31> words;
};
using linked_node = list_node<void*>;
static_assert(sizeof(linked_node) == 256);

/// What the words of a node are, and become in the hands of a worker.
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
/// Whether a node is what its owner expects after all rounds.
template <class Next>
bool as_expected(const list_node<Next>& n, unsigned owner, std::size_t number, unsigned workers,
                 unsigned rounds) {
  list_node<Next> expected = n;
  fill(expected, owner, number);
  for (unsigned round = 0; round < rounds; ++round)
    for (unsigned stage = 0; stage < pairing_stages(workers); ++stage)
      if (const unsigned peer = partner(owner, stage, workers); peer != nobody)
        change(expected, peer);
  return expected.words == n.words;
}

namespace detail {

/// The list as the worker that has received it, or owns it, sees it.
template <class Visit>
void for_each_node(cluster::worker& w, void* first, Visit visit) {
  for (void* p = first; p != nullptr;) {
    linked_node& n = *w.local(static_cast<linked_node*>(p));
    p = n.next;
    visit(n);
  }
}

/// Every worker tells every other where its list starts.
inline std::vector<void*> tell_all(cluster::worker& w, postbox& post, void* mine) {
  std::vector<void*> all(w.count());
  all[w.number()] = mine;
  for (unsigned stage = 0; stage < pairing_stages(w.count()); ++stage)
    if (const unsigned peer = partner(w.number(), stage, w.count()); peer != nobody)
      all[peer] = post.swap<void*>(peer, std::span<void* const>(&mine, 1)).at(0);
  return all;
}

}  // namespace detail

inline list_exchange_result run(cluster::worker& w, const list_exchange_options& options) {
  const unsigned me = w.number();
  list_exchange_result result;
  postbox post(w);
  phase_clock clock(w);

  const cluster::rid mine = must(w.create_region(cluster::root, 0), "a region for the list");
  void* first = nullptr;
  for (std::size_t i = options.nodes; i-- > 0;) {
    void* p = must(w.allocate(mine, sizeof(linked_node)), "a node");
    linked_node& n = *w.local(static_cast<linked_node*>(p));
    n.next = std::exchange(first, p);
    fill(n, me, i);
  }
  clock.charge(result.build);
  const std::vector<void*> heads = detail::tell_all(w, post, first);
  w.barrier();
  time_shares preparation;
  clock.charge(preparation);

  for (unsigned round = 0; round < options.rounds; ++round)
    for (unsigned stage = 0; stage < pairing_stages(w.count()); ++stage) {
      if (const unsigned peer = partner(me, stage, w.count()); peer != nobody) {
        cluster::rid theirs = 0;
        must(w.exchange(peer, {&mine, 1}, {&theirs, 1}), "to exchange lists");
        clock.charge(result.exchange);
        detail::for_each_node(w, heads[peer], [&](linked_node& n) {
          change(n, me);
          ++result.nodes_changed;
        });
        clock.charge(result.change);
        cluster::rid back = mine;
        must(w.exchange(peer, {&theirs, 1}, {&back, 1}), "to give lists back");
      }
      w.barrier();
      clock.charge(result.exchange);
      ++result.stages;
    }

  std::size_t number = 0;
  bool correct = true;
  detail::for_each_node(w, first, [&](const linked_node& n) {
    correct = correct && as_expected(n, me, number++, w.count(), options.rounds);
  });
  result.correct = correct && number == options.nodes;
  must(w.destroy_region(mine), "to free the list");
  post.close();
  return result;
}

}  // namespace quarry::apps
