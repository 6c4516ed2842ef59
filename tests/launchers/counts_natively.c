/* A program on farsum.h: every rank draws tickets from a counter in memory of rank 0's. All tickets must be different
 * ones, which their number and sum tell. Rank 0 prints "N ranks on M hosts: right". */
#include <farsum.h>
#include <stdio.h>
#include <stdlib.h>

enum { tickets_each = 100 };

static void require(farsum_status status) {
  if (status == FARSUM_OK) return;
  fprintf(stderr, "%s: %s\n", farsum_status_name(status), farsum_last_error());
  exit(EXIT_FAILURE);
}

static uint64_t draw_all(farsum_window window) {
  const uint64_t one = 1;
  uint64_t sum = 0;
  require(farsum_lock_all(window));
  for (int i = 0; i < tickets_each; ++i) {
    uint64_t ticket = 0;
    require(farsum_fetch_op(window, 0, 0, &one, &ticket, FARSUM_UINT64, FARSUM_SUM));
    sum += ticket;
  }
  require(farsum_unlock_all(window));
  return sum;
}

/* Nodes are numbered from 0 on. */
static int count_nodes(int ranks) {
  int most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int node = 0;
    require(farsum_node(farsum_world(), rank, &node));
    if (node > most) most = node;
  }
  return most + 1;
}

int main(void) {
  int rank, ranks;
  void* memory;
  farsum_window window;
  require(farsum_init(NULL));
  require(farsum_rank(farsum_world(), &rank));
  require(farsum_size(farsum_world(), &ranks));
  require(farsum_window_allocate(farsum_world(), sizeof(uint64_t), NULL, &memory, &window));
  const uint64_t mine = draw_all(window);
  uint64_t sum = 0;
  require(farsum_allreduce(farsum_world(), &mine, &sum, 1, FARSUM_UINT64, FARSUM_SUM));
  const uint64_t drawn = (uint64_t)ranks * tickets_each;
  const int is_right = sum == drawn * (drawn - 1) / 2;
  if (rank == 0) printf("%d ranks on %d hosts: %s\n", ranks, count_nodes(ranks), is_right ? "right" : "WRONG");
  require(farsum_window_free(&window));
  require(farsum_finalize());
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
