/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of quarry/myrmics.h: a program with the names of Lyberis et al. (2012). */
#include <quarry/myrmics.h>

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
  const rid_t a = sys_ralloc(0, 0), b = sys_ralloc(a, -1);
  char *p = sys_alloc(100, a), *q;
  void* many[20];
  int i;
  CHECK(a != 0 && b != 0 && a != b && p != NULL);
  strcpy(p, "text");
  q = sys_realloc(p, 10000, b);
  CHECK(q != NULL && strcmp(q, "text") == 0);
  CHECK(sys_balloc(192, b, 20, many) == QUARRY_OK);
  for (i = 1; i < 20; ++i) CHECK(many[i] != many[0]);
  for (i = 0; i < 20; ++i) CHECK(sys_free(many[i]) == QUARRY_OK);
  CHECK(sys_rfree(a) == QUARRY_OK);
  CHECK(sys_rfree(a) == QUARRY_STALE_REGION);
  CHECK(sys_alloc(8, b) == NULL && quarry_last_status() == QUARRY_STALE_REGION);
}

static void transfer(void) {
  rid_t r = 0, *regions[1];
  void *p = NULL, **objects_received[1];
  regions[0] = &r;
  objects_received[0] = &p;
  if (quarry_worker_id() == 0) {
    r = sys_ralloc(0, 0);
    p = sys_alloc(1000, r);
    memset(p, 'x', 1000);
    CHECK(sys_send(1, &r, 1, &p, 1) == QUARRY_OK);
  } else if (quarry_worker_id() == 1) {
    CHECK(sys_recv(0, regions, 1, objects_received, 1) == QUARRY_OK);
    CHECK(r != 0 && p != NULL && ((char*)p)[999] == 'x');
    CHECK(sys_rfree(r) == QUARRY_OK);
  }
  CHECK(sys_barrier() == QUARRY_OK);
}

static int work(int argc, char** argv) {
  (void)argc;
  (void)argv;
  objects();
  CHECK(sys_barrier() == QUARRY_OK);
  transfer();
  return failures;
}

int main(int argc, char** argv) {
  const int result = quarry_run(argc, argv, work);
  return result != 0 ? result : failures;
}
