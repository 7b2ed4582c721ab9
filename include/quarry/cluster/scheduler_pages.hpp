// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scheduler: pages: traded with parent and children; and what all do together. Part of scheduler.hpp.

#include <quarry/cluster/scheduler.hpp>

namespace quarry::cluster {

inline page_run scheduler::window_of(std::uint64_t window) const {
  const std::uint64_t count = std::min(options_.room, window_bytes) / page_bytes;
  return {window * count, count};
}
inline slab_run scheduler::slabs_of(page_run run) const {
  return {static_cast<slab_number>((run.first - window_of(my_window()).first) * slabs_in_page),
          static_cast<slab_number>(run.count * slabs_in_page)};
}
inline page_run scheduler::pages_of(slab_run run) const {
  return {window_of(my_window()).first + run.first / slabs_in_page, run.count / slabs_in_page};
}

// ---- lacking some -------------------------------------------------------------------------------

/// Pages for a request that lacks them: from here, or else from others.
inline void scheduler::starve(hungry h) {
  if (h.tries > most_tries || h.least > window_of(h.window).count) return refuse(h);
  if (feed(h)) return;
  trim_regions();
  if (feed(h)) return;
  ask_for(std::move(h));
}

/// True: there were enough, and the request went on.
inline bool scheduler::feed(hungry& h) {
  const bool mine = h.request.what != verb::want_pages;
  const node holder = mine ? self_ : h.request.from;
  const page_run window = window_of(h.window);
  // More than the least only while there is plenty: a share for each that may ask.
  const std::uint64_t share = book_.free_pages() / (children_.size() + 2);
  const std::uint64_t wanted =
      std::max(h.least, std::min(mine ? std::max(h.wanted, options_.plenty) : h.wanted, share));
  std::vector<page_run> got;
  std::uint64_t sum = 0;
  while (sum < wanted) {
    const page_run run = book_.take(got.empty() ? h.least : 1, wanted - sum, window, holder);
    if (!run) break;
    got.push_back(run);
    sum += run.count;
  }
  if (got.empty()) return false;
  if (mine) {
    for (const page_run run : got) regions_->add_pages(slabs_of(run));
    serve(std::move(h));
    return true;
  }
  message down = answer_to(h.request, region_status::ok);
  down.what = verb::give_pages;
  for (const page_run run : got) {
    down.words.push_back(run.first);
    down.words.push_back(run.count);
  }
  send(std::move(down));
  return true;
}

inline void scheduler::refuse(const hungry& h) {
  if (h.request.what != verb::want_pages) return answer(h.request, region_status::out_of_memory);
  message down = answer_to(h.request, region_status::out_of_memory);
  down.what = verb::give_pages;
  send(std::move(down));
}

/// Waits for the parent's pages, with those that wait for as many already; at the top, for all that
/// the others can return.
inline void scheduler::ask_for(hungry h) {
  for (auto& [ticket, wait] : page_waits_)
    if (wait.window == h.window && wait.least >= h.least) {
      wait.queue.push_back(std::move(h));
      return;
    }
  ++statistics_.page_requests;
  const std::uint64_t ticket = next_ticket_++;
  page_wait wait;
  wait.least = h.least;
  wait.window = h.window;
  if (self_ != 0) {
    message up;
    up.what = verb::want_pages;
    up.to = shape_.parent(self_);
    up.ticket = ticket;
    up.a = h.least;
    up.b = std::max(h.wanted, wish());
    up.c = h.window;
    send(std::move(up));
  } else {
    if (shape_.levels() == 1) return refuse(h);
    wait.answers = recall_from_children(ticket);
  }
  wait.queue.push_back(std::move(h));
  page_waits_[ticket] = std::move(wait);
}

inline unsigned scheduler::recall_from_children(std::uint64_t ticket) {
  for (const node c : children_) {
    message down;
    down.what = verb::recall_pages;
    down.to = c;
    down.ticket = ticket;
    send(std::move(down));
  }
  return static_cast<unsigned>(children_.size());
}

inline void scheduler::on_give_pages(const message& m) {
  for (std::size_t i = 0; i + 1 < m.words.size(); i += 2) book_.add({m.words[i], m.words[i + 1]});
  if (page_waits_.contains(m.ticket)) end_page_wait(m.ticket, m.words.empty());
}

/// Who asked is served, or refused when there is no more to come; those who had joined ask for
/// themselves if that did not help.
inline void scheduler::end_page_wait(std::uint64_t ticket, bool was_all) {
  page_wait wait = std::move(page_waits_.extract(ticket).mapped());
  for (std::size_t i = 0; i < wait.queue.size(); ++i) {
    hungry& h = wait.queue[i];
    ++h.tries;
    if (feed(h)) continue;
    const bool is_largest = i == 0 || has(detail::fault::fail_small_with_large_request);
    if (is_largest && was_all)
      refuse(h);
    else
      starve(std::move(h));
  }
}

// ---- having too many ----------------------------------------------------------------------------

/// Free slabs of the regions here that make up whole pages go into the book.
inline void scheduler::trim_regions() {
  regions_->trim();
  while (const slab_run run = regions_->take_pages(no_slab / 2))
    book_.give_back(pages_of(run), self_);
}

/// Called when something was freed: far more free pages than are liked go up.
inline void scheduler::return_surplus() {
  const std::uint64_t most = 2 * options_.plenty * slabs_in_page;
  if (regions_->free_slabs() > most)
    while (regions_->free_slabs() > most / 2) {
      const slab_run run =
          regions_->take_pages(static_cast<slab_number>(regions_->free_slabs() - most / 2));
      if (!run) break;
      book_.give_back(pages_of(run), self_);
    }
  if (self_ != 0 && book_.free_pages() > 2 * wish()) return_pages(wish());
}

/// All free pages of the book but so many go to the parent.
inline void scheduler::return_pages(std::uint64_t leave) {
  message up;
  up.what = verb::return_pages;
  up.to = shape_.parent(self_);
  while (book_.free_pages() > leave) {
    const page_run run = book_.remove(book_.free_pages() - leave);
    if (has(detail::fault::keep_returned_pages)) book_.add(run), leave += run.count;
    up.words.push_back(run.first);
    up.words.push_back(run.count);
    statistics_.pages_returned += run.count;
  }
  if (!up.words.empty()) send(std::move(up));
}

inline void scheduler::on_return_pages(const message& m) {
  for (std::size_t i = 0; i + 1 < m.words.size(); i += 2)
    book_.give_back({m.words[i], m.words[i + 1]}, m.from);
  return_surplus();
}

inline void scheduler::on_recall_pages(message m) {
  const std::uint64_t ticket = next_ticket_++;
  recall_wait wait{std::move(m), 1};
  if (level_ + 1 < shape_.levels()) wait.answers += recall_from_children(ticket);
  recalls_[ticket] = std::move(wait);
  one_recalled(ticket);
}

inline void scheduler::one_recalled(std::uint64_t ticket) {
  if (const auto it = recalls_.find(ticket); it != recalls_.end()) {
    if (--it->second.answers != 0) return;
    const message request = std::move(it->second.request);
    recalls_.erase(it);
    trim_regions();
    return_pages(0);
    return answer(request, region_status::ok);
  }
  const auto it = page_waits_.find(ticket);  // at the top
  if (--it->second.answers != 0) return;
  trim_regions();
  end_page_wait(ticket, true);
}

// ---- all together -------------------------------------------------------------------------------

/// barrier and goodbye: up when all below have come, down when all have.
inline void scheduler::on_sweep(message m, sweep& s) {
  const verb what = m.what;
  s.sum[0] += m.a;
  s.sum[1] += m.b;
  s.sum[2] += m.c;
  s.waiting.push_back(std::move(m));
  if (s.waiting.size() < children_.size()) return;
  if (what == verb::goodbye) {
    s.sum[0] += regions_->regions() - 1;
    regions_->for_each_below(*regions_->find(root_region), [&](region_tree::node_type& n) {
      const pool_statistics p = n.it->pool.statistics();
      s.sum[1] += p.objects;
      s.sum[2] += p.live_bytes;
    });
  }
  message total;
  total.a = s.sum[0];
  total.b = s.sum[1];
  total.c = s.sum[2];
  if (self_ == 0) {
    total.ticket = static_cast<std::uint64_t>(what);
    return finish_sweep(s, total);
  }
  total.what = what;
  total.to = shape_.parent(self_);
  total.ticket = static_cast<std::uint64_t>(what);
  send(std::move(total));
}

inline void scheduler::finish_sweep(sweep& s, const message& total) {
  std::vector<message> waiting;
  waiting.swap(s.waiting);
  s = {};
  for (const message& m : waiting) {
    message a = answer_to(m, region_status::ok);
    a.a = total.a;
    a.b = total.b;
    a.c = total.c;
    send(std::move(a));
  }
  if (&s == &goodbye_) ended_ = true;
}

}  // namespace quarry::cluster
