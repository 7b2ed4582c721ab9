// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scheduler: owns regions and pages, serves workers; Lyberis et al. (2012), section 5.
///
/// A state machine: a message comes in, messages go out, nothing else happens. It never waits: what
/// needs others is written down (create_wait, free_wait, page_wait, sweep) and taken up by the answer.
/// It never touches the memory it manages: a region_tree over addresses, without memory.
///
/// Who serves a request
///   about a region    the scheduler in its id (id.hpp); neighbours on the way pass it on
///   about an address  the owner of its page: here -> served; below -> to that child; unknown -> up;
///                     unknown at the top, or free -> not_ours. Pages are known as free or given at
///                     every scheduler above their holder, so a stale pointer ends with an answer.
///
/// Where a new region lies: as deep as its level hint says, at the bottom without one; sideways at the
/// child with the fewest regions, but on the asking worker's side while that has few more. A region
/// whose parent is elsewhere hangs under the local root; both sides note the other (annex).
/// Freeing a region: its ids go stale at once, those of local descendants with it; owners of remote
/// descendants are asked to do the same, workers that hold leases inside give them up; when all have
/// answered, the memory is free and the caller is told.
///
/// Pages: the top has all. A scheduler that lacks some trims its own regions, then asks its parent for
/// what it needs, and more if there is plenty; the parent likewise. At the top, all are asked to
/// return what they do not use before a request is refused. A scheduler that has far too much
/// returns some unasked. A refusal concerns the request that asked for so much, not smaller ones.
/// A scheduler's regions lie in one window of 8 TiB, so that slab numbers stay short.
///
/// Leases: slots lent to a worker are living objects here, marked with the worker (loan). Who else
/// frees one ends the loan of that slot: the worker is told, and the slot is used again when it has
/// answered; so a slot has one owner at any time. Objects that a worker sends away it takes off its
/// lease, so that whoever frees them then frees plain objects.

#include <quarry/cluster/detail/fault.hpp>
#include <quarry/cluster/id.hpp>
#include <quarry/cluster/message.hpp>
#include <quarry/cluster/page_book.hpp>
#include <quarry/core/config.hpp>
#include <quarry/region/packing.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace quarry::cluster {

// Sanitizers keep the addresses that all processes of a cluster agree on (address_space.hpp); these
// are for simulations.
#if QUARRY_TSAN
inline constexpr std::uint64_t default_base = 0x5500'0000'0000;
#elif QUARRY_ASAN
inline constexpr std::uint64_t default_base = 0x2000'0000'0000;
#else
inline constexpr std::uint64_t default_base = 0x1000'0000'0000;
#endif
inline constexpr std::uint64_t default_room = std::uint64_t{64} << 40;

struct scheduler_options {
  std::uint64_t base = default_base;  // of the address space, the same everywhere
  std::uint64_t room = default_room;  // bytes of it
  std::uint64_t plenty = 64;          // pages a scheduler likes to have, for itself and each below
  detail::fault fault = detail::fault::none;  // for tests
};

struct scheduler_statistics {
  std::uint64_t messages = 0;  // received, those passed on included
  std::uint64_t passed_on = 0;
  std::uint64_t served = 0;  // requests of workers answered here
  std::uint64_t page_requests = 0;
  std::uint64_t pages_returned = 0;
};

/// What workers have told the top so far, if they do (worker_options::reports).
struct cluster_progress {
  std::uint64_t allocations = 0;
  std::uint64_t calls = 0;
  std::uint64_t messages = 0;
};

class scheduler {
 public:
  scheduler(const shape& tree, node self, const scheduler_options& options = {});

  /// Messages to send are added to out; those with a `to` that is no neighbour go to the next hop.
  void receive(message m, std::vector<message>& out);
  /// All workers have said goodbye; no message will follow.
  bool ended() const { return ended_; }

  node self() const { return self_; }
  const scheduler_statistics& statistics() const { return statistics_; }
  std::uint64_t regions() const { return regions_->regions() - 1 + (self_ == 0 ? 1 : 0); }
  std::uint64_t load() const;
  /// Regions of a child's subtree, as far as it has told.
  std::uint64_t load_of(node child) const {
    const auto it = loads_.find(child);
    return it == loads_.end() ? 0 : it->second;
  }
  const std::vector<node>& children() const { return children_; }
  const cluster_progress& progress() const { return progress_; }
  const page_book& pages() const { return book_; }
  /// Empty: sound. Requires: nothing is in progress.
  std::string check_invariants() const;
  /// Children elsewhere, and regions here whose parent is elsewhere: in all, as many of both.
  std::uint64_t remote_children() const {
    std::uint64_t sum = 0;
    for (const auto& [number, x] : annexes_) sum += x.remote_children.size();
    return sum;
  }
  std::uint64_t adopted() const {
    std::uint64_t sum = 0;
    for (const auto& [number, x] : annexes_) sum += x.has_remote_parent ? 1 : 0;
    return sum;
  }
  /// Nothing waits for an answer.
  bool is_quiet() const {
    return creates_.empty() && frees_.empty() && page_waits_.empty() && recalls_.empty() &&
           packs_.empty() && revoking_.empty();
  }

 private:
  static constexpr std::uint64_t window_bytes = std::uint64_t{8} << 40;
  static constexpr std::uint64_t page_bytes = default_geometry.page;
  static constexpr slab_number slabs_in_page = default_geometry.slabs_in_page();
  static constexpr unsigned most_hops = 64;
  static constexpr unsigned most_tries = 64;

  bool has(detail::fault f) const { return options_.fault == f; }

  /// Slots of a slab that a worker has on loan.
  struct loan {
    node holder;
    std::uint64_t mask;
    unsigned revoking = 0;  // slots that somebody else freed, of which the holder does not know yet
  };
  /// What a region has beside objects and local children.
  struct annex {
    rid remote_parent = root;
    bool has_remote_parent = false;
    std::vector<rid> remote_children;
    std::unordered_map<slab_number, std::vector<loan>> loans;
  };

  /// A request that lacks pages: a worker's, or a child's want_pages.
  struct hungry {
    message request;
    std::uint64_t least = 1;  // pages in a row
    std::uint64_t wanted = 1;
    std::uint64_t window = 0;
    unsigned tries = 0;
  };
  struct page_wait {
    std::uint64_t least = 0;
    std::uint64_t window = 0;
    unsigned answers = 0;  // at the top: children that have not yet returned what they can
    std::vector<hungry> queue;
  };
  struct create_wait {
    message request;
  };
  struct free_wait {
    message request;
    region_id top;
    std::vector<region_id> dying;
    unsigned answers = 0;
  };
  struct pack_wait {
    message request;
    message reply;
    unsigned answers = 0;
  };
  struct recall_wait {
    message request;
    unsigned answers = 0;
  };
  struct revoke_wait {
    node holder;
    std::vector<std::uint64_t> addresses;
  };
  /// All children have come: the parent, or at the top everybody, is told.
  struct sweep {
    std::vector<message> waiting;
    std::uint64_t sum[3] = {};
  };

  // ---- the way (scheduler.hpp) ----
  void send(message m);
  void answer(const message& request, region_status s) { send(answer_to(request, s)); }
  message answer_to(const message& request, region_status s) const {
    message m = request.answered(s);
    m.from = self_;
    return m;
  }
  /// True: the address is of a page here. Else the request was passed on, or refused.
  bool is_here(message& m, std::uint64_t address);
  node way_to(std::uint64_t address) const;
  void on_answer(message m);

  // ---- regions (scheduler_regions.hpp) ----
  void on_create(message m);
  void on_adopt(message m);
  void created(create_wait wait, const message& a);
  void on_free_region(message m);
  void one_freed(std::uint64_t ticket);
  void on_disown(const message& m);
  /// Asks the owners of a region's remote children. How many.
  unsigned ask_remote_children(region_id parent, verb what, std::uint64_t ticket);
  void on_pack(message m);
  void one_packed(std::uint64_t ticket, const message& a);
  void on_describe(const message& m);
  unsigned target_level(std::uint64_t hint) const;
  node choose_child(node asking) const;
  void report_load();
  /// The living region, or nullptr.
  region_tree::node_type* find(rid id) const;
  annex* annex_of(region_id id) {
    const auto it = annexes_.find(id.number());
    return it == annexes_.end() ? nullptr : &it->second;
  }
  rid name_of(region_id local) const { return make_rid(self_, local); }

  // ---- objects (scheduler_objects.hpp) ----
  void on_alloc(message m, unsigned tries = 0);
  void on_alloc_bulk(message m, unsigned tries = 0);
  void on_lease(message m, unsigned tries = 0);
  void serve(hungry h);
  void on_free_objects(message m);
  region_status free_one(std::uint64_t address,
                         std::unordered_map<node, std::vector<std::uint64_t>>& of_holders);
  void on_resize(message m);
  void on_size_of(message m);
  void on_return_leases(const message& m);
  void revoked(const revoke_wait& wait);
  struct slot {
    slab_number slab;
    std::uint64_t bit;
  };
  slot slot_of(const void* p) const {
    const std::uintptr_t offset = regions_->table().offset_of(p);
    return {slab_table_view<>::slab_at(offset),
            std::uint64_t{1} << offset / default_geometry.slot % default_geometry.units_in_slab()};
  }
  /// Of the object that starts there; an error where none does.
  region_result<region_id> living_object(std::uint64_t address) const;

  // ---- pages (scheduler_pages.hpp) ----
  void starve(hungry h);
  bool feed(hungry& h);
  void refuse(const hungry& h);
  void ask_for(hungry h);
  void on_give_pages(const message& m);
  void on_return_pages(const message& m);
  void on_recall_pages(message m);
  void one_recalled(std::uint64_t ticket);
  /// How many were asked.
  unsigned recall_from_children(std::uint64_t ticket);
  void end_page_wait(std::uint64_t ticket, bool was_all);
  void trim_regions();
  void return_surplus();
  void return_pages(std::uint64_t leave);
  page_run window_of(std::uint64_t window) const;
  std::uint64_t my_window() const { return self_ % windows_; }
  slab_run slabs_of(page_run run) const;
  page_run pages_of(slab_run run) const;
  std::uint64_t wish() const { return options_.plenty * below_; }

  // ---- all together (scheduler_pages.hpp) ----
  void on_sweep(message m, sweep& s);
  void finish_sweep(sweep& s, const message& total);

  shape shape_;
  node self_;
  scheduler_options options_;
  std::vector<node> children_;
  unsigned level_;
  unsigned below_ = 1;  // schedulers from here down
  std::uint64_t windows_;
  std::unique_ptr<region_tree> regions_;
  page_book book_;
  std::unordered_map<std::uint32_t, annex> annexes_;  // by the region's number
  std::unordered_set<std::uint64_t> dying_;           // local ids
  std::unordered_map<node, std::uint64_t> loads_;     // regions of each child's subtree
  std::uint64_t reported_load_ = 0;

  std::uint64_t next_ticket_ = 1000;  // sweeps have the numbers of their verbs
  std::unordered_map<std::uint64_t, create_wait> creates_;
  std::unordered_map<std::uint64_t, free_wait> frees_;
  std::unordered_map<std::uint64_t, pack_wait> packs_;
  std::unordered_map<std::uint64_t, page_wait> page_waits_;
  std::unordered_map<std::uint64_t, recall_wait> recalls_;
  std::unordered_map<std::uint64_t, revoke_wait> revokes_;
  std::unordered_set<std::uint64_t> revoking_;  // addresses
  sweep barrier_;
  sweep goodbye_;
  bool ended_ = false;
  scheduler_statistics statistics_;
  cluster_progress progress_;
  std::vector<message>* out_ = nullptr;
};

inline scheduler::scheduler(const shape& tree, node self, const scheduler_options& options)
    : shape_(tree),
      self_(self),
      options_(options),
      children_(tree.children(self)),
      level_(tree.level(self)) {
  if (tree.schedulers() > most_schedulers)
    throw error("a cluster has at most " + std::to_string(most_schedulers) + " schedulers");
  if (options.room == 0 || options.room % page_bytes != 0 || options.base % page_bytes != 0)
    throw error("the cluster's room is not a number of whole pages");
  const std::uint64_t window = std::min(options.room, window_bytes);
  windows_ = options.room / window;
  tree_options local;
  local.range = window;
  local.metadata = std::max(window / 64, std::uint64_t{1} << 28);  // regions cost some, too
  local.where = reinterpret_cast<void*>(options.base + my_window() * window);  // NOLINT
  local.threads = sharing::one_thread;
  local.addresses_only = true;
  local.most_generations = most_generations;
  regions_ = std::make_unique<region_tree>(local);
  if (self == 0) book_.add({0, options.room / page_bytes});
  for (node s = 0; s < tree.schedulers(); ++s) {
    node above = s;
    while (above > self) above = tree.parent(above);
    if (above == self && s != self) ++below_;
  }
}

inline void scheduler::send(message m) {
  if (m.from == no_node) m.from = self_;
  out_->push_back(std::move(m));
}

inline void scheduler::receive(message m, std::vector<message>& out) {
  out_ = &out;
  ++statistics_.messages;
  if (m.to != self_) {
    ++statistics_.passed_on;
    return send(std::move(m));
  }
  switch (m.what) {
    case verb::create: return on_create(std::move(m));
    case verb::free_region: return on_free_region(std::move(m));
    case verb::alloc: return on_alloc(std::move(m));
    case verb::alloc_bulk: return on_alloc_bulk(std::move(m));
    case verb::lease: return on_lease(std::move(m));
    case verb::free_objects: return on_free_objects(std::move(m));
    case verb::resize: return on_resize(std::move(m));
    case verb::size_of: return on_size_of(std::move(m));
    case verb::pack: return on_pack(std::move(m));
    case verb::describe: return on_describe(m);
    case verb::barrier: return on_sweep(std::move(m), barrier_);
    case verb::goodbye: return on_sweep(std::move(m), goodbye_);
    case verb::answer: return on_answer(std::move(m));
    case verb::adopt: return on_adopt(std::move(m));
    case verb::disown: return on_disown(m);
    case verb::want_pages: return starve({m, m.a, m.b, m.c, 0});
    case verb::give_pages: return on_give_pages(m);
    case verb::return_pages: return on_return_pages(m);
    case verb::recall_pages: return on_recall_pages(std::move(m));
    case verb::load: loads_[m.from] = m.a; return report_load();
    case verb::report:
      progress_.allocations += m.a;
      progress_.calls += m.b;
      progress_.messages += m.c;
      return;
    case verb::return_leases:
    case verb::release_leases: return on_return_leases(m);
    default: return;  // nothing that a scheduler is told
  }
}

inline void scheduler::on_answer(message m) {
  const std::uint64_t t = m.ticket;
  if (const auto c = creates_.find(t); c != creates_.end()) {
    create_wait wait = std::move(c->second);
    creates_.erase(c);
    return created(std::move(wait), m);
  }
  if (frees_.contains(t)) return one_freed(t);
  if (packs_.contains(t)) return one_packed(t, m);
  if (page_waits_.contains(t) || recalls_.contains(t)) return one_recalled(t);
  if (const auto r = revokes_.find(t); r != revokes_.end()) {
    const revoke_wait wait = std::move(r->second);
    revokes_.erase(r);
    return revoked(wait);
  }
  if (m.from == shape_.parent(self_)) {  // of a sweep, from above
    if (t == static_cast<std::uint64_t>(verb::barrier)) return finish_sweep(barrier_, m);
    if (t == static_cast<std::uint64_t>(verb::goodbye)) return finish_sweep(goodbye_, m);
  }
}

inline node scheduler::way_to(std::uint64_t address) const {
  if (address < options_.base || address - options_.base >= options_.room) return no_node;
  const page_book::place p = book_.find((address - options_.base) / page_bytes);
  if (p.known) return p.holder;
  return self_ == 0 ? no_node : shape_.parent(self_);
}

inline bool scheduler::is_here(message& m, std::uint64_t address) {
  const node next = m.hops >= most_hops ? no_node : way_to(address);
  if (next == self_) return true;
  if (next == no_node) {
    answer(m, region_status::not_ours);
  } else {
    ++m.hops;
    m.to = next;
    send(std::move(m));
  }
  return false;
}

inline std::string scheduler::check_invariants() const {
  const std::string name = "scheduler " + std::to_string(self_) + ": ";
  if (std::string fault = book_.check_invariants(); !fault.empty()) return name + fault;
  if (std::string fault = regions_->check_invariants(); !fault.empty()) return name + fault;
  if (!is_quiet()) return name + "something still waits for an answer";
  if (!dying_.empty()) return name + "a region is still dying";
  return {};
}

}  // namespace quarry::cluster

#include <quarry/cluster/scheduler_objects.hpp>
#include <quarry/cluster/scheduler_pages.hpp>
#include <quarry/cluster/scheduler_regions.hpp>
