// SPDX-License-Identifier: Apache-2.0
// scheduler: pages. Requested from the parent on demand and in advance, granted to children,
// recalled and returned.
#include "cluster/scheduler/state.hpp"

#include <algorithm>

namespace quarry::cluster::detail {

namespace {

/// Whether no run is empty and all lie in an address space of `pages` pages.
bool are_valid(const std::vector<page_run>& runs, std::uint64_t pages) {
  return std::all_of(runs.begin(), runs.end(), [&](page_run run) {
    return run && run.first < pages && run.count <= pages - run.first;
  });
}

}  // namespace

std::uint64_t scheduler::page_target() const {
  std::uint64_t sum = 0;
  for (const reserve& r : reserves_) sum += r.pages;
  return sum;
}

scheduler::reserve* scheduler::reserve_of(std::uint64_t window) {
  const auto it = std::find_if(reserves_.begin(), reserves_.end(),
                               [&](const reserve& r) { return r.window == window; });
  return it == reserves_.end() ? nullptr : &*it;
}

page_run scheduler::window_pages(std::uint64_t window) const {
  const std::uint64_t count = std::min(options_.capacity, window_bytes) / page_bytes;
  return {window * count, count};
}
slab_run scheduler::slabs_of(page_run run) const {
  return {static_cast<slab_number>((run.first - window_pages(own_window()).first) * slabs_in_page),
          static_cast<slab_number>(run.count * slabs_in_page)};
}
page_run scheduler::pages_of(slab_run run) const {
  return {window_pages(own_window()).first + run.first / slabs_in_page, run.count / slabs_in_page};
}

// ---- requests -----------------------------------------------------------------------------------

void scheduler::on(const envelope& e, const page_request& r) {
  const blocked_request b{e, r, r.min_run, r.wanted, r.window, 0};
  if (!r.in_advance) return obtain_pages(b);
  if (!try_grant(b) && !try_queue(b)) fail_blocked(b);
}

/// Grants pages to the request from this scheduler's table, or requests them from the parent.
void scheduler::obtain_pages(blocked_request b) {
  if (b.attempts > max_attempts || b.min_run > window_pages(b.window).count) return fail_blocked(b);
  if (try_grant(b)) return;
  trim_regions();
  if (try_grant(b)) return;
  request_pages(b);
}

/// Returns true if there were enough free pages; the request has then been served.
bool scheduler::try_grant(const blocked_request& b) {
  const bool for_child = std::holds_alternative<page_request>(b.request);
  const node_id holder = for_child ? b.sender.from : self_;
  const page_run window = window_pages(b.window);
  // More pages than the request needs are granted only while many are free: at most an equal share
  // for this scheduler, each child, and one more.
  const std::uint64_t share = pages_.free_pages() / (children_.size() + 2);
  const std::uint64_t preferred =
      for_child ? b.wanted : std::max(b.wanted, options_.tuning.reserve_pages);
  const std::uint64_t required = is_in_advance(b) ? 0 : b.min_run;
  const std::uint64_t count = std::max(required, std::min(preferred, share));
  std::vector<page_run> runs;
  std::uint64_t sum = 0;
  while (sum < count) {
    const page_run run = pages_.assign(runs.empty() ? b.min_run : 1, count - sum, window, holder);
    if (!run) break;
    runs.push_back(run);
    sum += run.count;
  }
  if (runs.empty()) return false;
  if (for_child) {
    reply(b.sender, page_grant{std::move(runs)});
  } else {
    for (const page_run run : runs) regions_->add_pages(slabs_of(run));
    serve_again(b);
  }
  refill(b.window);
  return true;
}

void scheduler::fail_blocked(const blocked_request& b) {
  if (std::holds_alternative<page_request>(b.request))
    reply(b.sender, page_grant{}, region_status::out_of_memory);
  else
    fail(b.sender, region_status::out_of_memory);
}

/// Queues the request behind a pending request for at least as many pages, or sends a new request
/// to the parent. The top scheduler recalls unused pages from its children instead.
void scheduler::request_pages(const blocked_request& b) {
  if (!std::holds_alternative<page_request>(b.request)) ++statistics_.waits_for_pages;
  if (try_queue(b)) return;
  if (self_ != 0) {
    const reserve* r = reserve_of(b.window);
    const std::uint64_t target = r == nullptr ? 0 : r->pages;
    return ask_parent({b.min_run, b.window, false, 0, {b}}, std::max(b.wanted, target));
  }
  if (shape_.levels() == 1) return fail_blocked(b);
  const std::uint64_t ticket = next_ticket_++;
  const unsigned replies = recall_from_children(ticket);
  page_waits_[ticket] = {b.min_run, b.window, false, replies, {b}};
}

/// Returns true if the request now waits behind a pending request for at least as many pages.
bool scheduler::try_queue(const blocked_request& b) {
  for (auto& [ticket, pending] : page_waits_)
    if (pending.window == b.window && pending.min_run >= b.min_run) {
      pending.queue.push_back(b);
      return true;
    }
  return false;
}

void scheduler::ask_parent(pending_pages pending, std::uint64_t wanted) {
  ++statistics_.page_requests;
  const std::uint64_t ticket = next_ticket_++;
  send_to(shape_.parent(self_),
          page_request{pending.min_run, wanted, pending.window, pending.in_advance}, ticket);
  page_waits_[ticket] = std::move(pending);
}

/// Requests pages in advance if fewer than the low watermark are free in the window and none are on
/// their way.
void scheduler::refill(std::uint64_t window) {
  const reserve* r = reserve_of(window);
  if (self_ == 0 || r == nullptr || r->denied) return;
  const std::uint64_t free = pages_.free_pages_in(window_pages(window));
  if (free >= r->low) return;
  for (const auto& [ticket, pending] : page_waits_)
    if (pending.window == window) return;
  ask_parent({1, window, true, 0, {}}, r->pages - free);
}

std::vector<message> scheduler::start() {
  std::vector<message> out;
  out_ = &out;
  for (const reserve& r : reserves_) refill(r.window);
  return out;
}

void scheduler::on(const envelope& e, const page_grant& r) {
  if (e.from != shape_.parent(self_) || !are_valid(r.runs, options_.capacity / page_bytes))
    return on_malformed(e);
  for (const page_run run : r.runs) pages_.add(run);
  if (page_waits_.contains(e.ticket)) resume_blocked(e.ticket, r.runs.empty());
}

/// Serves the queued requests. If there were no more pages, the first request fails: it asked for
/// the most. The others are tried again. Requests in advance are not: they end with an empty grant.
/// If the pending request was in advance itself, no queued request of a worker fails yet.
void scheduler::resume_blocked(std::uint64_t ticket, bool no_more_pages) {
  pending_pages pending = std::move(page_waits_.extract(ticket).mapped());
  if (reserve* r = reserve_of(pending.window)) r->denied = no_more_pages;
  for (std::size_t i = 0; i < pending.queue.size(); ++i) {
    blocked_request& b = pending.queue[i];
    ++b.attempts;
    if (try_grant(b)) continue;
    const bool is_largest = i == 0 || has(fault::fail_small_with_large_request);
    if (is_in_advance(b) || (is_largest && no_more_pages && !pending.in_advance))
      fail_blocked(b);
    else
      obtain_pages(b);
  }
}

// ---- recall and return --------------------------------------------------------------------------

/// Returns the number of children.
unsigned scheduler::recall_from_children(std::uint64_t ticket) {
  for (const node_id c : children_) send_to(c, page_recall{}, ticket);
  return static_cast<unsigned>(children_.size());
}

void scheduler::on(const envelope& e, const page_recall&) {
  const std::uint64_t ticket = next_ticket_++;
  pending_recall p{e, 1};  // balanced by the call below
  if (level_ + 1 < shape_.levels()) p.replies += recall_from_children(ticket);
  recalls_[ticket] = p;
  count_recalled(ticket);
}

/// One child fewer has to acknowledge the recall.
void scheduler::count_recalled(std::uint64_t ticket) {
  if (const auto it = recalls_.find(ticket); it != recalls_.end()) {
    if (--it->second.replies != 0) return;
    const envelope sender = it->second.sender;
    recalls_.erase(it);
    trim_regions();
    if (self_ != 0) return_pages(0);
    return reply(sender, acknowledgement{});
  }
  const auto it = page_waits_.find(ticket);
  if (it->second.replies == 0 || --it->second.replies != 0) return;
  trim_regions();
  resume_blocked(ticket, true);
}

void scheduler::release(page_run run, node_id holder) {
  pages_.release(run, holder);
  for (reserve& r : reserves_) r.denied = false;
}

/// Free slabs of the local regions that form whole pages become free pages.
void scheduler::trim_regions() {
  regions_->trim();
  while (const slab_run run = regions_->take_pages(no_slab / 2)) release(pages_of(run), self_);
}

/// Returns free pages to the parent if there are more than twice the target. Called after
/// deallocations.
void scheduler::return_surplus() {
  const std::uint64_t max_slabs = 2 * options_.tuning.reserve_pages * slabs_in_page;
  if (regions_->free_slabs() > max_slabs)
    while (regions_->free_slabs() > max_slabs / 2) {
      const slab_run run =
          regions_->take_pages(static_cast<slab_number>(regions_->free_slabs() - max_slabs / 2));
      if (!run) break;
      release(pages_of(run), self_);
    }
  if (self_ != 0 && pages_.free_pages() > 2 * page_target()) return_pages(page_target());
}

/// Sends all free pages except `keep` to the parent.
void scheduler::return_pages(std::uint64_t keep) {
  page_return up;
  while (pages_.free_pages() > keep) {
    const page_run run = pages_.remove_free(pages_.free_pages() - keep);
    if (has(fault::keep_returned_pages)) pages_.add(run), keep += run.count;
    up.runs.push_back(run);
    statistics_.pages_returned += run.count;
  }
  if (!up.runs.empty()) send_to(shape_.parent(self_), up);
}

void scheduler::on(const envelope& e, const page_return& r) {
  if (e.from == self_ || !are_valid(r.runs, options_.capacity / page_bytes)) return on_malformed(e);
  for (const page_run run : r.runs) release(run, e.from);
  return_surplus();
}

}  // namespace quarry::cluster::detail
