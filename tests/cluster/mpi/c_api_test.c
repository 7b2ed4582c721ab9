/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of quarry/cluster.h: their results on success and on failure. */
#include <quarry/cluster.h>

#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "worker %d: %s:%d: failed: %s (last status: %s)\n", quarry_worker_id(), \
              __FILE__, __LINE__, #condition, quarry_status_text(quarry_last_status()));      \
      ++failures;                                                                             \
    }                                                                                         \
  } while (0)

static void objects(void) {
  const quarry_region_id a = quarry_region_create(0, 0), b = quarry_region_create(a, -1);
  char *p = quarry_allocate(a, 100), *q;
  void* many[50];
  int i;
  CHECK(a != 0 && b != 0 && a != b && p != NULL);
  strcpy(p, "text");
  q = quarry_reallocate(p, 10000, b);
  CHECK(q != NULL && strcmp(q, "text") == 0);
  CHECK(quarry_reallocate(q, 0, b) == NULL);
  CHECK(quarry_reallocate(NULL, 10, b) != NULL);
  CHECK(quarry_allocate(b, 0) != NULL);
  CHECK(quarry_allocate_bulk(b, 192, 50, many) == QUARRY_OK);
  for (i = 0; i < 50; ++i) CHECK(quarry_deallocate(many[i]) == QUARRY_OK);
  CHECK(quarry_allocate_bulk(b, 192, 0, NULL) == QUARRY_OK);
  CHECK(quarry_deallocate(NULL) == QUARRY_OK);
  CHECK(quarry_flush() == QUARRY_OK);
  CHECK(quarry_region_destroy(a) == QUARRY_OK);

  CHECK(quarry_region_destroy(a) == QUARRY_STALE_REGION &&
        quarry_last_status() == QUARRY_STALE_REGION);
  CHECK(quarry_region_create(b, 0) == QUARRY_INVALID_REGION &&
        quarry_last_status() == QUARRY_STALE_REGION);
  CHECK(quarry_allocate(QUARRY_INVALID_REGION, 8) == NULL &&
        quarry_last_status() == QUARRY_STALE_REGION);
  CHECK(quarry_allocate(b, 8) == NULL && quarry_last_status() == QUARRY_STALE_REGION);
  CHECK(quarry_region_destroy(0) == QUARRY_ROOT_REGION);
  CHECK(quarry_region_create(0, -2) == QUARRY_INVALID_REGION &&
        quarry_last_status() == QUARRY_BAD_ARGUMENT);
  CHECK(quarry_allocate_bulk(0, 8, -1, many) == QUARRY_BAD_ARGUMENT);
  CHECK(quarry_allocate_bulk(0, 8, 1, NULL) == QUARRY_BAD_ARGUMENT);
  CHECK(quarry_send(-1, NULL, 0, NULL, 0) == QUARRY_NO_SUCH_WORKER);
  CHECK(quarry_send(0, NULL, 1, NULL, 0) == QUARRY_BAD_ARGUMENT);
  CHECK(quarry_reallocate(&i, 10, 0) == NULL && quarry_last_status() == QUARRY_NOT_OURS);
  i = quarry_deallocate(&i);
  CHECK(i != QUARRY_OK || quarry_flush() == QUARRY_NOT_OURS);
  for (i = -1; i < 103; ++i) CHECK(quarry_status_text(i) != NULL);
}

static void between_workers(void) {
  quarry_region_id r = 0, *list[1];
  void *p = NULL, **objs[1];
  list[0] = &r;
  objs[0] = &p;
  if (quarry_worker_id() == 0) {
    r = quarry_region_create(0, 0);
    p = quarry_allocate(r, 1000);
    memset(p, 'x', 1000);
    CHECK(quarry_send(1, &r, 1, &p, 1) == QUARRY_OK);
    CHECK(quarry_send(1, &r, 1, NULL, 0) == QUARRY_MISMATCH);
    CHECK(quarry_hand_over(1, &r, 1) == QUARRY_OK);
  } else if (quarry_worker_id() == 1) {
    CHECK(quarry_receive(0, list, 1, objs, 1) == QUARRY_OK);
    CHECK(r != 0 && p != NULL && ((char*)p)[999] == 'x');
    CHECK(quarry_receive(0, list, 1, objs, 1) == QUARRY_MISMATCH);
    CHECK(quarry_take_over(0, list, 1) == QUARRY_OK);
    CHECK(((char*)p)[999] == 'x');
    CHECK(quarry_region_destroy(r) == QUARRY_OK);
  }
  CHECK(quarry_barrier() == QUARRY_OK);
}

static int work(int argc, char** argv) {
  CHECK(argc == 2 && strcmp(argv[1], "argument") == 0);
  CHECK(quarry_worker_count() >= 2 && quarry_worker_id() < quarry_worker_count());
  objects();
  CHECK(quarry_barrier() == QUARRY_OK);
  between_workers();
  return failures;
}

int main(int argc, char** argv) {
  int result;
  CHECK(quarry_worker_id() == -1 && quarry_worker_count() == -1);
  CHECK(quarry_allocate(0, 8) == NULL && quarry_last_status() == QUARRY_NOT_RUNNING);
  result = quarry_run(argc, argv, work);
  CHECK(quarry_barrier() == QUARRY_NOT_RUNNING);
  return result != 0 ? result : failures;
}
