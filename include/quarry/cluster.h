/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUARRY_CLUSTER_H
#define QUARRY_CLUSTER_H
/*
 * Regions across processes, from C: the calls of Figure 1 of Lyberis et al. (2012) by their names.
 *
 *   static int work(int argc, char **argv) { rid_t r = sys_ralloc(0, 0); ... return 0; }
 *   int main(int argc, char **argv) { return sys_run(argc, argv, work); }
 *
 *   mpirun -n 17 ./program        some ranks become schedulers, the others run work()
 *
 * Pointers mean the same in all workers. What a worker writes is its own copy until it is sent.
 * Calls that return int return a status: SYS_OK (0) or one of the others below. Those that return a
 * region or a pointer return 0 or NULL when they fail; sys_last_status then says why. Where the
 * paper's calls return nothing, these return a status; nothing else about them differs but
 * sys_realloc, which returns the pointer, for it may be a new one.
 * Call them from the thread that runs work(), and only inside it.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A region of the cluster. 0 is the root, which always exists. */
typedef uint64_t rid_t;

enum {
  SYS_OK = 0,
  SYS_OUT_OF_MEMORY,
  SYS_TOO_LARGE,
  SYS_ZERO_SIZE,
  SYS_BAD_ALIGNMENT,
  SYS_NOT_OURS,      /* the address belongs to no region */
  SYS_NOT_AN_OBJECT, /* no living object starts at the address */
  SYS_STALE_REGION,  /* the region was freed, or never was */
  SYS_ROOT_REGION,   /* the root can not be freed */
  SYS_TOO_MANY,      /* regions */
  SYS_MISMATCH,      /* sender and receiver name different regions or objects */
  SYS_NO_SUCH_WORKER,
  SYS_BAD_ARGUMENT = 100, /* a count below 0, a NULL list, or a level hint below -1 */
  SYS_NOT_RUNNING = 101   /* called outside sys_run */
};
/* Never NULL. */
const char* sys_error_text(int status);
/* Of the last call of this process that failed. */
int sys_last_status(void);

/* ---- regions ---- */

/* A new region inside parent; 0: failed. level_hint: how deep it lies, 0 right below the root; -1 when
 * unknown. */
rid_t sys_ralloc(rid_t parent, int level_hint);
/* Frees the region, its objects, and all regions inside it. */
int sys_rfree(rid_t region);

/* ---- objects ---- */

/* Aligned to 64 bytes; NULL: failed. An object of 0 bytes has an address of its own. */
void* sys_alloc(size_t size, rid_t region);
/* NULL is freed by doing nothing. A pointer that is no object may be told of later: see sys_flush. */
int sys_free(void* ptr);
/* The object with new_size bytes, at its place or elsewhere in new_region; its contents go along. NULL
 * allocates, size 0 frees and gives NULL; NULL otherwise: failed, and the object is as it was. */
void* sys_realloc(void* old_ptr, size_t new_size, rid_t new_region);
/* num_objects objects of one size, or none. */
int sys_balloc(size_t size, rid_t region, int num_objects, void** objects);
/* Sends frees that were collected. The status of the first that failed since the last flush. */
int sys_flush(void);

/* ---- between workers ---- */

/* Copies regions, with all inside, and objects to the peer, which calls sys_recv with as many of each.
 * Returns when the peer has them, or has refused. */
int sys_send(int peer_worker_id, rid_t* regions, int num_regions, void** objects, int num_objects);
/* regions[i] and objects[i] point to what is expected: a region or an object that must be the one
 * that comes, or 0 or NULL, which is filled in. */
int sys_recv(int peer_worker_id, rid_t** regions, int num_regions, void*** objects,
             int num_objects);
/* Moves regions to the peer, which calls sys_take_over: this worker's copy ends. Nothing is copied
 * between workers of one host. */
int sys_hand_over(int peer_worker_id, rid_t* regions, int num_regions);
int sys_take_over(int peer_worker_id, rid_t** regions, int num_regions);
/* Returns when all workers have called it. */
int sys_barrier(void);

/* ---- the program ---- */

/* Starts MPI, runs worker_main in all workers, ends MPI, and returns the largest number that one of
 * them returned. What no one freed is reported on stderr. */
int sys_run(int argc, char** argv, int (*worker_main)(int argc, char** argv));
/* 0 ... sys_worker_count() - 1; -1 outside sys_run. */
int sys_worker_id(void);
int sys_worker_count(void);

#ifdef __cplusplus
}
#endif
#endif
