/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUARRY_CLUSTER_H
#define QUARRY_CLUSTER_H
/*
 * Regions across processes, from C. quarry/myrmics.h adds the names of Lyberis et al. (2012).
 *
 *   static int work(int argc, char **argv) {
 *     quarry_region_id r = quarry_region_create(0, 0);
 *     ...
 *     return 0;
 *   }
 *   int main(int argc, char **argv) { return quarry_run(argc, argv, work); }
 *
 *   mpirun -n 17 ./program        some ranks become schedulers, the others run work()
 *
 * Pointers have the same meaning in all workers. A worker writes to its own copy of the memory
 * until it sends the region. Functions that return int return a status: QUARRY_OK (0) or another
 * value of the enumeration below. Functions that return a region or a pointer return
 * QUARRY_INVALID_REGION or NULL on failure; quarry_last_status then returns the status. Calls with
 * QUARRY_INVALID_REGION fail with QUARRY_STALE_REGION.
 *
 * Thread safety: none. Only the thread that runs work() may call these functions, and only inside
 * work().
 */
/* NOLINTBEGIN(modernize-deprecated-headers,modernize-use-using): C has neither. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The id of a region. 0 is the root, which always exists. */
typedef uint64_t quarry_region_id;
/* NOLINTEND(modernize-deprecated-headers,modernize-use-using) */
/* An id that no region ever has. */
#define QUARRY_INVALID_REGION UINT64_MAX

enum {
  QUARRY_OK = 0,
  QUARRY_OUT_OF_MEMORY,
  QUARRY_TOO_LARGE,
  QUARRY_ZERO_SIZE,
  QUARRY_BAD_ALIGNMENT,
  QUARRY_NOT_OURS,           /* the address belongs to no region */
  QUARRY_NOT_AN_OBJECT,      /* no live object starts at the address */
  QUARRY_STALE_REGION,       /* the region was destroyed, or never existed */
  QUARRY_ROOT_REGION,        /* the root cannot be destroyed */
  QUARRY_TOO_MANY,           /* regions */
  QUARRY_MISMATCH,           /* sender and receiver name different regions or objects */
  QUARRY_NO_SUCH_WORKER,     /* the peer is no other worker */
  QUARRY_NO_REGION,          /* a handle of C++ owns no region */
  QUARRY_MALFORMED_MESSAGE,  /* a message between nodes could not be decoded */
  QUARRY_BAD_ARGUMENT = 100, /* a count below 0, a NULL list, or a level hint below -1 */
  QUARRY_NOT_RUNNING = 101   /* called outside quarry_run */
};
/* Returns a description of the status, never NULL. */
const char* quarry_status_text(int status);
/* Returns the status of the last call of this process that failed. */
int quarry_last_status(void);

/* ---- regions ---- */

/* Creates a region inside parent; returns QUARRY_INVALID_REGION on failure. level_hint: the depth
 * of the region, 0 for a child of the root; -1: unknown. */
quarry_region_id quarry_region_create(quarry_region_id parent, int level_hint);
/* Destroys the region, its objects, and all regions inside it. */
int quarry_region_destroy(quarry_region_id region);

/* ---- objects ---- */

/* Returns an object aligned to 64 bytes; NULL on failure. An object of 0 bytes has an address of
 * its own. */
void* quarry_allocate(quarry_region_id region, size_t size);
/* Allocates count objects of one size, or none. */
int quarry_allocate_bulk(quarry_region_id region, size_t size, int count, void** objects);
/* NULL has no effect. A pointer that is no object may be reported later, by quarry_flush. */
int quarry_deallocate(void* ptr);
/* Returns the object with new_size bytes, at its address or elsewhere in the region, with its
 * contents. A NULL ptr allocates; size 0 deallocates and returns NULL. NULL otherwise: the call
 * failed, and the object is unchanged. */
void* quarry_reallocate(void* ptr, size_t new_size, quarry_region_id region);
/* Sends the collected deallocations. Returns the first failure since the last flush. */
int quarry_flush(void);

/* ---- transfers between workers ---- */

/* Copies regions, with everything inside, and objects to the peer, which calls quarry_receive with
 * the same number of each. Returns when the peer has received or rejected them. */
int quarry_send(int peer, quarry_region_id* regions, int num_regions, void** objects,
                int num_objects);
/* regions[i] and objects[i] point to an expected region or object, which must be the one that
 * arrives, or to 0 or NULL, which is filled in. */
int quarry_receive(int peer, quarry_region_id** regions, int num_regions, void*** objects,
                   int num_objects);
/* Moves regions to the peer, which calls quarry_take_over: this worker's access ends. Nothing is
 * copied between workers of one host. */
int quarry_hand_over(int peer, quarry_region_id* regions, int num_regions);
int quarry_take_over(int peer, quarry_region_id** regions, int num_regions);
/* Returns when all workers have called it. */
int quarry_barrier(void);

/* ---- the program ---- */

/* Initializes MPI, runs worker_main in all workers, finalizes MPI, and returns the largest value
 * that a worker returned. Reports on stderr what was not freed. */
int quarry_run(int argc, char** argv, int (*worker_main)(int argc, char** argv));
/* 0 ... quarry_worker_count() - 1; -1 outside quarry_run. */
int quarry_worker_id(void);
int quarry_worker_count(void);

#ifdef __cplusplus
}
#endif
#endif
