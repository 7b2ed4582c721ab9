/* SPDX-License-Identifier: Apache-2.0 */
/* A list that travels: the first worker builds it in a region and sends it on; every worker adds a
 * node and passes it to the next; the first gets it back and finds all of them. No pointer is changed
 * on the way.
 *
 *   mpirun -n 5 example_cluster_list
 */
#include <quarry/cluster.h>

#include <stdio.h>

struct node {
  int worker;
  struct node* next;
};

static struct node* push(rid_t list, struct node* head) {
  struct node* n = sys_alloc(sizeof *n, list);
  if (n == NULL) return NULL;
  n->worker = sys_worker_id();
  n->next = head;
  return n;
}

static int fail(const char* what, int status) {
  fprintf(stderr, "worker %d: %s: %s\n", sys_worker_id(), what, sys_error_text(status));
  return 1;
}

/* The head of the list lies in a box, an object that is named beside the region: that tells the others
 * where it is. */
static int work(int argc, char** argv) {
  const int me = sys_worker_id(), count = sys_worker_count();
  const int before = (me + count - 1) % count, after = (me + 1) % count;
  rid_t list = 0, *lists[1] = {&list};
  void *box = NULL, **boxes[1] = {&box};
  struct node** head;
  int status = SYS_OK;
  (void)argc;
  (void)argv;
  if (count < 2) {
    puts("a list needs two workers to travel between");
    return 0;
  }

  if (me == 0) {
    list = sys_ralloc(0, 0);
    if (list == 0) return fail("sys_ralloc", sys_last_status());
    box = sys_alloc(sizeof *head, list);
    if (box == NULL) return fail("sys_alloc", sys_last_status());
    head = box;
    *head = NULL;
  } else {
    status = sys_recv(before, lists, 1, boxes, 1);
    if (status != SYS_OK) return fail("sys_recv", status);
    head = box;
  }

  *head = push(list, *head);
  if (*head == NULL) return fail("sys_alloc", sys_last_status());
  status = sys_send(after, &list, 1, &box, 1);
  if (status != SYS_OK) return fail("sys_send", status);
  if (me != 0) return 0;

  status = sys_recv(before, lists, 1, boxes, 1); /* must be the same region, the same object */
  if (status != SYS_OK) return fail("sys_recv", status);
  {
    int expected = count - 1;
    const struct node* n;
    for (n = *head; n != NULL; n = n->next)
      if (n->worker != expected--) return fail("the list is not what was built", SYS_MISMATCH);
    if (expected != -1) return fail("the list is too short", SYS_MISMATCH);
  }
  printf("a list of %d nodes went round %d workers\n", count, count);
  status = sys_rfree(list);
  return status == SYS_OK ? 0 : fail("sys_rfree", status);
}

int main(int argc, char** argv) { return sys_run(argc, argv, work); }
