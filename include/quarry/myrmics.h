/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUARRY_MYRMICS_H
#define QUARRY_MYRMICS_H
/*
 * The calls of Figure 1 of Lyberis et al. (2012) by their names, as inline functions over
 * quarry/cluster.h. Where the paper's functions return nothing, these return a status. sys_realloc
 * returns the pointer, since the object may move.
 */
#include <quarry/cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef quarry_region_id rid_t;

static inline rid_t sys_ralloc(rid_t parent, int level_hint) {
  return quarry_region_create(parent, level_hint);
}
static inline int sys_rfree(rid_t region) { return quarry_region_destroy(region); }

static inline void* sys_alloc(size_t size, rid_t region) { return quarry_allocate(region, size); }
static inline int sys_free(void* ptr) { return quarry_deallocate(ptr); }
static inline void* sys_realloc(void* old_ptr, size_t new_size, rid_t new_region) {
  return quarry_reallocate(old_ptr, new_size, new_region);
}
static inline int sys_balloc(size_t size, rid_t region, int num_objects, void** objects) {
  return quarry_allocate_bulk(region, size, num_objects, objects);
}

static inline int sys_send(int peer_worker_id, rid_t* regions, int num_regions, void** objects,
                           int num_objects) {
  return quarry_send(peer_worker_id, regions, num_regions, objects, num_objects);
}
static inline int sys_recv(int peer_worker_id, rid_t** regions, int num_regions, void*** objects,
                           int num_objects) {
  return quarry_receive(peer_worker_id, regions, num_regions, objects, num_objects);
}
static inline int sys_barrier(void) { return quarry_barrier(); }

#ifdef __cplusplus
}
#endif
#endif
