// SPDX-License-Identifier: Apache-2.0
// worker: allocation and deallocation of objects.
#include "cluster/worker/state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace quarry::cluster {

using namespace detail;

region_result<void*> worker::allocate(rid region, std::size_t size, std::size_t alignment) {
  return state_->allocate(region, size, alignment);
}
region_status worker::allocate_bulk(rid region, std::size_t size, std::span<void*> out) {
  return state_->allocate_bulk(region, size, out);
}
region_status worker::deallocate(void* p) { return state_->deallocate(p); }
region_result<void*> worker::reallocate(void* p, std::size_t n, rid region) {
  return state_->reallocate(p, n, region);
}
region_result<std::size_t> worker::usable_size(const void* p) { return state_->usable_size(p); }

// ---- allocation ---------------------------------------------------------------------------------

region_result<void*> worker::state::allocate(rid region, std::size_t size, std::size_t alignment) {
  ++statistics.calls;
  ++statistics.allocations;
  const bool may_lease = options.leases && size - 1 < lease_table::max_object_bytes &&
                         alignment <= default_geometry.slot && std::has_single_bit(alignment);
  if (may_lease) {
    const unsigned units = lease_table::units_of(size);
    void* p = leases_.allocate(region, units);
    if (p == nullptr && obtain_lease(region, units)) p = leases_.allocate(region, units);
    if (p != nullptr) {
      if (leases_.needs_refill(region, units)) request_lease(region, units);
      return ++statistics.from_leases, p;
    }
  }
  const allocate_request r{region, size, alignment};
  auto reply = request_owner(region, r);
  if (reply.status == region_status::out_of_memory && return_unused_memory())
    reply = request_owner(region, r);
  if (!reply) return reply.status;
  void* const p = pointer(reply->object);
  link.enable_access({static_cast<std::byte*>(p), size});
  return p;
}

region_status worker::state::allocate_bulk(rid region, std::size_t size, std::span<void*> out) {
  ++statistics.calls;
  statistics.allocations += out.size();
  std::fill(out.begin(), out.end(), nullptr);
  const allocate_bulk_request r{region, size, out.size()};
  auto reply = request_owner(region, r);
  if (reply.status == region_status::out_of_memory && return_unused_memory())
    reply = request_owner(region, r);
  if (!reply) return reply.status;
  const std::vector<address>& objects = reply->objects;
  if (objects.size() != out.size()) return region_status::malformed_message;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = pointer(objects[i]);
    link.enable_access({static_cast<std::byte*>(out[i]), size});
  }
  return region_status::ok;
}

region_result<std::size_t> worker::state::usable_size(const void* p) {
  ++statistics.calls;
  if (const std::size_t size = leases_.size_of(p)) return size;
  const auto reply = request(parent(), size_request{address_of(p)});
  if (!reply) return reply.status;
  return std::size_t{reply->size};
}

region_result<void*> worker::state::reallocate(void* p, std::size_t n, rid region) {
  if (p == nullptr) return allocate(region, n, default_geometry.slot);
  if (n == 0) {
    if (const region_status s = deallocate(p); s != region_status::ok) return s;
    return static_cast<void*>(nullptr);
  }
  ++statistics.calls;
  std::size_t old_size = leases_.size_of(p);
  if (old_size != 0) {
    const bool fits = n <= old_size && (n > old_size / 2 || old_size == default_geometry.slot);
    if (leases_.region_of(p) == region && fits) return p;
  } else {
    const auto reply = request(parent(), resize_request{address_of(p), n, region});
    if (!reply) return reply.status;
    if (reply->in_place) {
      link.enable_access({static_cast<std::byte*>(p), n});
      return p;
    }
    old_size = reply->old_size;
  }
  const region_result<void*> fresh = allocate(region, n, default_geometry.slot);
  if (!fresh) return fresh;
  const std::ptrdiff_t offset = link.local_offset();
  std::memcpy(static_cast<std::byte*>(*fresh) + offset, static_cast<std::byte*>(p) + offset,
              std::min(old_size, n));
  if (const region_status s = deallocate(p); s != region_status::ok) {
    deallocate(*fresh);  // Another worker has freed p in the meantime.
    return s;
  }
  return fresh;
}

// ---- deallocation -------------------------------------------------------------------------------

region_status worker::state::deallocate(void* p) {
  ++statistics.calls;
  if (p == nullptr) return region_status::ok;
  if (options.leases) {
    switch (leases_.deallocate(p)) {
      case lease_table::free_result::already_free: return region_status::not_an_object;
      case lease_table::free_result::freed:
        if (leases_.has_surplus(p)) {
          const rid region = leases_.region_of(p);
          return_leases([region](rid r) { return r == region; }, lease_table::max_free_slots / 2);
        }
        return region_status::ok;
      case lease_table::free_result::not_leased: break;
    }
  }
  frees_.push_back(address_of(p));
  if (!options.leases) return flush();
  if (frees_.size() >= frees_in_batch) send_frees();
  return region_status::ok;
}

void worker::state::send_frees() {
  if (frees_.empty()) return;
  serve();
  free_request batch{std::exchange(frees_, {})};
  unacknowledged_frees_ += batch.objects.size();
  post(make_message(parent(), batch, frees_ticket));
}

void worker::state::on_frees(const message& m) {
  const auto reply = body_of<free_reply>(m);
  if (!reply) return;
  const std::uint64_t count = reply->freed + reply->failures.size();
  unacknowledged_frees_ -= std::min(count, unacknowledged_frees_);
  if (first_failed_free_ == region_status::ok && !reply->failures.empty())
    first_failed_free_ = reply->failures.front().status;
}

void worker::state::wait_for_frees() {
  send_frees();
  wait_until(&worker_statistics::waited_for_schedulers, [&] { return unacknowledged_frees_ == 0; });
}

region_status worker::state::flush() {
  wait_for_frees();
  return std::exchange(first_failed_free_, region_status::ok);
}

}  // namespace quarry::cluster
