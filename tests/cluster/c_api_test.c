/* SPDX-License-Identifier: Apache-2.0 */
/* The C calls: what they return when all is well, and when it is not. */
#include <quarry/cluster.h>

#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(truth)                                                                       \
  do {                                                                                     \
    if (!(truth)) {                                                                        \
      fprintf(stderr, "worker %d: %s:%d: not so: %s (last status: %s)\n", sys_worker_id(), \
              __FILE__, __LINE__, #truth, sys_error_text(sys_last_status()));              \
      ++failures;                                                                          \
    }                                                                                      \
  } while (0)

static void objects(void) {
  const rid_t a = sys_ralloc(0, 0), b = sys_ralloc(a, -1);
  char *p = sys_alloc(100, a), *q;
  void* many[50];
  int i;
  CHECK(a != 0 && b != 0 && a != b && p != NULL);
  strcpy(p, "text");
  q = sys_realloc(p, 10000, b);
  CHECK(q != NULL && strcmp(q, "text") == 0);
  CHECK(sys_realloc(q, 0, b) == NULL);
  CHECK(sys_realloc(NULL, 10, b) != NULL);
  CHECK(sys_alloc(0, b) != NULL);
  CHECK(sys_balloc(192, b, 50, many) == SYS_OK);
  for (i = 0; i < 50; ++i) CHECK(sys_free(many[i]) == SYS_OK);
  CHECK(sys_balloc(192, b, 0, NULL) == SYS_OK);
  CHECK(sys_free(NULL) == SYS_OK);
  CHECK(sys_flush() == SYS_OK);
  CHECK(sys_rfree(a) == SYS_OK);

  CHECK(sys_rfree(a) == SYS_STALE_REGION && sys_last_status() == SYS_STALE_REGION);
  CHECK(sys_ralloc(b, 0) == 0 && sys_last_status() == SYS_STALE_REGION);
  CHECK(sys_alloc(8, b) == NULL && sys_last_status() == SYS_STALE_REGION);
  CHECK(sys_rfree(0) == SYS_ROOT_REGION);
  CHECK(sys_ralloc(0, -2) == 0 && sys_last_status() == SYS_BAD_ARGUMENT);
  CHECK(sys_balloc(8, 0, -1, many) == SYS_BAD_ARGUMENT);
  CHECK(sys_balloc(8, 0, 1, NULL) == SYS_BAD_ARGUMENT);
  CHECK(sys_send(-1, NULL, 0, NULL, 0) == SYS_NO_SUCH_WORKER);
  CHECK(sys_send(0, NULL, 1, NULL, 0) == SYS_BAD_ARGUMENT);
  CHECK(sys_realloc(&i, 10, 0) == NULL && sys_last_status() == SYS_NOT_OURS);
  i = sys_free(&i);
  CHECK(i != SYS_OK || sys_flush() == SYS_NOT_OURS);
  for (i = -1; i < 103; ++i) CHECK(sys_error_text(i) != NULL);
}

static void between_workers(void) {
  rid_t r = 0, *list[1];
  void *p = NULL, **objs[1];
  list[0] = &r;
  objs[0] = &p;
  if (sys_worker_id() == 0) {
    r = sys_ralloc(0, 0);
    p = sys_alloc(1000, r);
    memset(p, 'x', 1000);
    CHECK(sys_send(1, &r, 1, &p, 1) == SYS_OK);
    CHECK(sys_send(1, &r, 1, NULL, 0) == SYS_MISMATCH);
    CHECK(sys_hand_over(1, &r, 1) == SYS_OK);
  } else if (sys_worker_id() == 1) {
    CHECK(sys_recv(0, list, 1, objs, 1) == SYS_OK);
    CHECK(r != 0 && p != NULL && ((char*)p)[999] == 'x');
    CHECK(sys_recv(0, list, 1, objs, 1) == SYS_MISMATCH);
    CHECK(sys_take_over(0, list, 1) == SYS_OK);
    CHECK(((char*)p)[999] == 'x');
    CHECK(sys_rfree(r) == SYS_OK);
  }
  CHECK(sys_barrier() == SYS_OK);
}

static int work(int argc, char** argv) {
  CHECK(argc == 2 && strcmp(argv[1], "argument") == 0);
  CHECK(sys_worker_count() >= 2 && sys_worker_id() < sys_worker_count());
  objects();
  CHECK(sys_barrier() == SYS_OK);
  between_workers();
  return failures;
}

int main(int argc, char** argv) {
  int result;
  CHECK(sys_worker_id() == -1 && sys_worker_count() == -1);
  CHECK(sys_alloc(8, 0) == NULL && sys_last_status() == SYS_NOT_RUNNING);
  result = sys_run(argc, argv, work);
  CHECK(sys_barrier() == SYS_NOT_RUNNING);
  return result != 0 ? result : failures;
}
