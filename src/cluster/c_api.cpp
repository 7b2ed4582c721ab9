// SPDX-License-Identifier: Apache-2.0
// The C interface of the cluster (quarry/cluster.h): one worker per process, statuses instead of
// exceptions.
#include <quarry/cluster.h>
#include <quarry/cluster/run.hpp>

#include <algorithm>
#include <vector>

using quarry::region_result;
using quarry::region_status;
using quarry::cluster::rid;

namespace {

quarry::cluster::worker* this_worker = nullptr;
int last_status = QUARRY_OK;

constexpr int code(region_status s) { return static_cast<int>(s); }
static_assert(code(region_status::ok) == QUARRY_OK);
static_assert(code(region_status::out_of_memory) == QUARRY_OUT_OF_MEMORY);
static_assert(code(region_status::too_large) == QUARRY_TOO_LARGE);
static_assert(code(region_status::zero_size) == QUARRY_ZERO_SIZE);
static_assert(code(region_status::bad_alignment) == QUARRY_BAD_ALIGNMENT);
static_assert(code(region_status::not_ours) == QUARRY_NOT_OURS);
static_assert(code(region_status::not_an_object) == QUARRY_NOT_AN_OBJECT);
static_assert(code(region_status::stale_region) == QUARRY_STALE_REGION);
static_assert(code(region_status::is_root) == QUARRY_ROOT_REGION);
static_assert(code(region_status::too_many) == QUARRY_TOO_MANY);
static_assert(code(region_status::mismatch) == QUARRY_MISMATCH);
static_assert(code(region_status::no_such_worker) == QUARRY_NO_SUCH_WORKER);
static_assert(code(region_status::no_region) == QUARRY_NO_REGION);
static_assert(code(region_status::malformed_message) == QUARRY_MALFORMED_MESSAGE);

/// Remembers a failure for quarry_last_status and returns it.
int record(int status) {
  if (status != QUARRY_OK) last_status = status;
  return status;
}

/// Calls a function of the worker and returns its status. An exception becomes a status.
template <class Call>
int status_of(Call call) {
  if (this_worker == nullptr) return record(QUARRY_NOT_RUNNING);
  try {
    return record(code(call(*this_worker)));
  } catch (const std::bad_alloc&) {
    return record(QUARRY_OUT_OF_MEMORY);
  }
}
/// Returns the value of a call, or `otherwise` on failure.
template <class Value, class Call>
Value value_of(Value otherwise, Call call) {
  Value value = otherwise;
  status_of([&](quarry::cluster::worker& w) {
    const region_result<Value> r = call(w);
    if (r) value = *r;
    return r.status;
  });
  return value;
}

bool is_list(const void* list, int count) { return count >= 0 && (count == 0 || list != nullptr); }

/// The regions of a list, as the C++ interface takes them.
std::vector<rid> region_list(const quarry_region_id* regions, int count) {
  std::vector<rid> ids;
  for (const quarry_region_id id : std::span(regions, static_cast<std::size_t>(count)))
    ids.push_back(rid{id});
  return ids;
}

/// The values that quarry_receive points to, as a contiguous list of T. store() writes them back.
template <class T, class InC = T>
class pointed_values {
 public:
  pointed_values(InC** pointers, int count) : pointers_(pointers, static_cast<std::size_t>(count)) {
    for (const InC* p : pointers_) values_.push_back(p == nullptr ? T{} : static_cast<T>(*p));
  }
  std::span<T> values() { return values_; }
  void store() {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (pointers_[i] != nullptr) *pointers_[i] = static_cast<InC>(values_[i]);
  }

 private:
  std::span<InC*> pointers_;
  std::vector<T> values_;
};
using pointed_regions = pointed_values<rid, quarry_region_id>;

}  // namespace

extern "C" {

const char* quarry_status_text(int status) {
  if (status == QUARRY_BAD_ARGUMENT)
    return "a count below 0, a NULL list, or a level hint below -1";
  if (status == QUARRY_NOT_RUNNING) return "called outside quarry_run";
  if (status < 0 || status > QUARRY_MALFORMED_MESSAGE) return "unknown";
  return to_text(static_cast<region_status>(status));
}
int quarry_last_status(void) { return last_status; }

quarry_region_id quarry_region_create(quarry_region_id parent, int level_hint) {
  if (level_hint < -1) return record(QUARRY_BAD_ARGUMENT), QUARRY_INVALID_REGION;
  return static_cast<quarry_region_id>(value_of(rid{QUARRY_INVALID_REGION}, [&](auto& w) {
    return w.create_region(rid{parent}, level_hint);
  }));
}
int quarry_region_destroy(quarry_region_id region) {
  return status_of([&](auto& w) { return w.destroy_region(rid{region}); });
}

void* quarry_allocate(quarry_region_id region, size_t size) {
  return value_of<void*>(nullptr,
                         [&](auto& w) { return w.allocate(rid{region}, size == 0 ? 1 : size); });
}
int quarry_deallocate(void* ptr) {
  return status_of([&](auto& w) { return w.deallocate(ptr); });
}
void* quarry_reallocate(void* ptr, size_t new_size, quarry_region_id region) {
  if (ptr == nullptr) return quarry_allocate(region, new_size);
  return value_of<void*>(nullptr,
                         [&](auto& w) { return w.reallocate(ptr, new_size, rid{region}); });
}
int quarry_allocate_bulk(quarry_region_id region, size_t size, int count, void** objects) {
  if (!is_list(objects, count)) return record(QUARRY_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    return w.allocate_bulk(rid{region}, size == 0 ? 1 : size,
                           std::span(objects, static_cast<std::size_t>(count)));
  });
}
int quarry_flush(void) {
  return status_of([](auto& w) { return w.flush(); });
}

int quarry_send(int peer, quarry_region_id* regions, int num_regions, void** objects,
                int num_objects) {
  if (!is_list(regions, num_regions) || !is_list(objects, num_objects))
    return record(QUARRY_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    return w.send(static_cast<unsigned>(peer), region_list(regions, num_regions),
                  std::span<void* const>(objects, static_cast<std::size_t>(num_objects)));
  });
}
int quarry_receive(int peer, quarry_region_id** regions, int num_regions, void*** objects,
                   int num_objects) {
  if (!is_list(regions, num_regions) || !is_list(objects, num_objects))
    return record(QUARRY_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    pointed_regions r(regions, num_regions);
    pointed_values<void*> o(objects, num_objects);
    const region_status s = w.receive(static_cast<unsigned>(peer), r.values(), o.values());
    if (s == region_status::ok) r.store(), o.store();
    return s;
  });
}
int quarry_hand_over(int peer, quarry_region_id* regions, int num_regions) {
  if (!is_list(regions, num_regions)) return record(QUARRY_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    return w.hand_over(static_cast<unsigned>(peer), region_list(regions, num_regions));
  });
}
int quarry_take_over(int peer, quarry_region_id** regions, int num_regions) {
  if (!is_list(regions, num_regions)) return record(QUARRY_BAD_ARGUMENT);
  return status_of([&](auto& w) {
    pointed_regions r(regions, num_regions);
    const region_status s = w.take_over(static_cast<unsigned>(peer), r.values());
    if (s == region_status::ok) r.store();
    return s;
  });
}
int quarry_barrier(void) {
  return status_of([](auto& w) {
    w.barrier();
    return region_status::ok;
  });
}

int quarry_run(int argc, char** argv, int (*worker_main)(int argc, char** argv)) {
  return quarry::cluster::run(argc, argv, [&](quarry::cluster::worker& w) {
    this_worker = &w;
    const int result = worker_main(argc, argv);
    this_worker = nullptr;
    return result;
  });
}
int quarry_worker_id(void) {
  return this_worker == nullptr ? -1 : static_cast<int>(this_worker->number());
}
int quarry_worker_count(void) {
  return this_worker == nullptr ? -1 : static_cast<int>(this_worker->count());
}

}  // extern "C"
