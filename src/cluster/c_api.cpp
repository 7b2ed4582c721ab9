// SPDX-License-Identifier: Apache-2.0
// The C face of the cluster (quarry/cluster.h): one worker a process, statuses for exceptions.
#include <quarry/cluster.h>
#include <quarry/cluster/run.hpp>

#include <algorithm>
#include <vector>

using quarry::region_result;
using quarry::region_status;
using quarry::cluster::rid;

namespace {

quarry::cluster::worker* here = nullptr;
int last_status = SYS_OK;

constexpr int code(region_status s) { return static_cast<int>(s); }
static_assert(code(region_status::ok) == SYS_OK);
static_assert(code(region_status::out_of_memory) == SYS_OUT_OF_MEMORY);
static_assert(code(region_status::too_large) == SYS_TOO_LARGE);
static_assert(code(region_status::zero_size) == SYS_ZERO_SIZE);
static_assert(code(region_status::bad_alignment) == SYS_BAD_ALIGNMENT);
static_assert(code(region_status::not_ours) == SYS_NOT_OURS);
static_assert(code(region_status::not_an_object) == SYS_NOT_AN_OBJECT);
static_assert(code(region_status::stale_region) == SYS_STALE_REGION);
static_assert(code(region_status::is_root) == SYS_ROOT_REGION);
static_assert(code(region_status::too_many) == SYS_TOO_MANY);
static_assert(code(region_status::mismatch) == SYS_MISMATCH);
static_assert(code(region_status::no_such_worker) == SYS_NO_SUCH_WORKER);

int note(int status) {
  if (status != SYS_OK) last_status = status;
  return status;
}

/// Runs a call of the worker; whatever goes wrong becomes a status.
template <class Call>
int status_of(Call call) {
  if (here == nullptr) return note(SYS_NOT_RUNNING);
  try {
    return note(code(call(*here)));
  } catch (const std::bad_alloc&) {
    return note(SYS_OUT_OF_MEMORY);
  }
}
/// The value of a call, or 0.
template <class Value, class Call>
Value value_of(Call call) {
  Value value{};
  status_of([&](quarry::cluster::worker& w) {
    const region_result<Value> r = call(w);
    if (r) value = *r;
    return r.status;
  });
  return value;
}

bool is_list(const void* list, int count) { return count >= 0 && (count == 0 || list != nullptr); }

/// What sys_recv is pointed at, as a plain list, and back.
template <class T>
class pointed_at {
 public:
  pointed_at(T** places, int count) : places_(places, static_cast<std::size_t>(count)) {
    for (T* p : places_) values_.push_back(p == nullptr ? T{} : *p);
  }
  std::span<T> values() { return values_; }
  void fill_in() {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (places_[i] != nullptr) *places_[i] = values_[i];
  }

 private:
  std::span<T*> places_;
  std::vector<T> values_;
};

}  // namespace

extern "C" {

const char* sys_error_text(int status) {
  if (status == SYS_BAD_ARGUMENT) return "an argument makes no sense";
  if (status == SYS_NOT_RUNNING) return "not inside sys_run";
  if (status < 0 || status > SYS_NO_SUCH_WORKER) return "unknown";
  return to_text(static_cast<region_status>(status));
}
int sys_last_status(void) { return last_status; }

rid_t sys_ralloc(rid_t parent, int level_hint) {
  if (level_hint < -1) return note(SYS_BAD_ARGUMENT), 0;
  return value_of<rid>([&](auto& w) { return w.create_region(parent, level_hint); });
}
int sys_rfree(rid_t region) {
  return status_of([&](auto& w) { return w.destroy_region(region); });
}

void* sys_alloc(size_t size, rid_t region) {
  return value_of<void*>([&](auto& w) { return w.allocate(region, size == 0 ? 1 : size); });
}
int sys_free(void* ptr) {
  return status_of([&](auto& w) { return w.deallocate(ptr); });
}
void* sys_realloc(void* old_ptr, size_t new_size, rid_t new_region) {
  if (old_ptr == nullptr) return sys_alloc(new_size, new_region);
  return value_of<void*>([&](auto& w) { return w.reallocate(old_ptr, new_size, new_region); });
}
int sys_balloc(size_t size, rid_t region, int num_objects, void** objects) {
  if (!is_list(objects, num_objects)) return note(SYS_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    return w.allocate_bulk(region, size == 0 ? 1 : size,
                           std::span(objects, static_cast<std::size_t>(num_objects)));
  });
}
int sys_flush(void) {
  return status_of([](auto& w) { return w.flush(); });
}

int sys_send(int peer_worker_id, rid_t* regions, int num_regions, void** objects, int num_objects) {
  if (!is_list(regions, num_regions) || !is_list(objects, num_objects))
    return note(SYS_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    return w.send(static_cast<unsigned>(peer_worker_id),
                  std::span<const rid>(regions, static_cast<std::size_t>(num_regions)),
                  std::span<void* const>(objects, static_cast<std::size_t>(num_objects)));
  });
}
int sys_recv(int peer_worker_id, rid_t** regions, int num_regions, void*** objects,
             int num_objects) {
  if (!is_list(regions, num_regions) || !is_list(objects, num_objects))
    return note(SYS_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    pointed_at<rid_t> r(regions, num_regions);
    pointed_at<void*> o(objects, num_objects);
    const region_status s =
        w.receive(static_cast<unsigned>(peer_worker_id), r.values(), o.values());
    if (s == region_status::ok) r.fill_in(), o.fill_in();
    return s;
  });
}
int sys_hand_over(int peer_worker_id, rid_t* regions, int num_regions) {
  if (!is_list(regions, num_regions)) return note(SYS_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    return w.hand_over(static_cast<unsigned>(peer_worker_id),
                       std::span<const rid>(regions, static_cast<std::size_t>(num_regions)));
  });
}
int sys_take_over(int peer_worker_id, rid_t** regions, int num_regions) {
  if (!is_list(regions, num_regions)) return note(SYS_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    pointed_at<rid_t> r(regions, num_regions);
    const region_status s = w.take_over(static_cast<unsigned>(peer_worker_id), r.values());
    if (s == region_status::ok) r.fill_in();
    return s;
  });
}
int sys_barrier(void) {
  return status_of([](auto& w) {
    w.barrier();
    return region_status::ok;
  });
}

int sys_run(int argc, char** argv, int (*worker_main)(int argc, char** argv)) {
  return quarry::cluster::run(argc, argv, [&](quarry::cluster::worker& w) {
    here = &w;
    const int result = worker_main(argc, argv);
    here = nullptr;
    return result;
  });
}
int sys_worker_id(void) { return here == nullptr ? -1 : static_cast<int>(here->number()); }
int sys_worker_count(void) { return here == nullptr ? -1 : static_cast<int>(here->count()); }

}  // extern "C"
