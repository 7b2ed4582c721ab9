/* SPDX-License-Identifier: Apache-2.0 */
/* A list that travels. The first worker creates it in a region and sends the region to the next
 * worker. Every worker adds a node and sends the region on. The first worker receives it and finds
 * all nodes. No pointer is changed on the way.
 *
 *   mpirun -n 5 example_cluster_list
 */
#include <quarry/cluster.h>

#include <stdio.h>

struct node {
  int worker;
  struct node* next;
};

static struct node* push(quarry_region_id list, struct node* head) {
  struct node* n = quarry_allocate(list, sizeof *n);
  if (n == NULL) return NULL;
  n->worker = quarry_worker_id();
  n->next = head;
  return n;
}

static int fail(const char* what, int status) {
  fprintf(stderr, "worker %d: %s: %s\n", quarry_worker_id(), what, quarry_status_text(status));
  return 1;
}

/* The head of the list is stored in an object, the box. The box is sent beside the region, so that
 * the receiver knows its address. */
static int work(int argc, char** argv) {
  const int me = quarry_worker_id(), count = quarry_worker_count();
  const int before = (me + count - 1) % count, after = (me + 1) % count;
  quarry_region_id list = 0, *lists[1] = {&list};
  void *box = NULL, **boxes[1] = {&box};
  struct node** head;
  int status = QUARRY_OK;
  (void)argc;
  (void)argv;
  if (count < 2) {
    puts("a list needs two workers to travel between");
    return 0;
  }

  if (me == 0) {
    list = quarry_region_create(0, 0);
    if (list == QUARRY_INVALID_REGION) return fail("quarry_region_create", quarry_last_status());
    box = quarry_allocate(list, sizeof *head);
    if (box == NULL) return fail("quarry_allocate", quarry_last_status());
    head = box;
    *head = NULL;
  } else {
    status = quarry_receive(before, lists, 1, boxes, 1);
    if (status != QUARRY_OK) return fail("quarry_receive", status);
    head = box;
  }

  *head = push(list, *head);
  if (*head == NULL) return fail("quarry_allocate", quarry_last_status());
  status = quarry_send(after, &list, 1, &box, 1);
  if (status != QUARRY_OK) return fail("quarry_send", status);
  if (me != 0) return 0;

  status = quarry_receive(before, lists, 1, boxes, 1); /* must be the same region and object */
  if (status != QUARRY_OK) return fail("quarry_receive", status);
  {
    int expected = count - 1;
    const struct node* n;
    for (n = *head; n != NULL; n = n->next)
      if (n->worker != expected--) return fail("the list is not what was built", QUARRY_MISMATCH);
    if (expected != -1) return fail("the list is too short", QUARRY_MISMATCH);
  }
  printf("a list of %d nodes travelled through %d workers\n", count, count);
  status = quarry_region_destroy(list);
  return status == QUARRY_OK ? 0 : fail("quarry_region_destroy", status);
}

int main(int argc, char** argv) { return quarry_run(argc, argv, work); }
