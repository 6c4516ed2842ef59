/* All ranks share 1000 tasks by drawing tickets from one counter: a rank that is quicker draws more of them.
 * The squares that they add up must give the sum over all tasks, whoever did which.
 *
 *   farsum run -n 3 build/bin/example-shared_counter
 */
#include <farsum.h>
#include <stdio.h>
#include <stdlib.h>

enum { task_count = 1000 };

static void require(farsum_status status) {
  if (status == FARSUM_OK) return;
  fprintf(stderr, "%s: %s\n", farsum_status_name(status), farsum_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  int rank;
  require(farsum_init(NULL));
  require(farsum_rank(farsum_world(), &rank));

  void* total; /* rank 0's is used */
  farsum_window window;
  require(farsum_window_allocate(farsum_world(), sizeof(uint64_t), NULL, &total, &window));
  farsum_counter counter;
  farsum_counter_options options = {.struct_bytes = sizeof options, .kind = FARSUM_COUNTER_STRICT, .home = 0};
  require(farsum_counter_create(farsum_world(), &options, &counter));

  uint64_t ticket, mine = 0, done = 0;
  for (require(farsum_counter_next(counter, &ticket)); ticket < task_count; ++done) {
    mine += ticket * ticket;
    require(farsum_counter_next(counter, &ticket));
  }
  require(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
  require(farsum_accumulate(window, 0, 0, &mine, 1, FARSUM_UINT64, FARSUM_SUM));
  require(farsum_unlock(window, 0));
  printf("rank %d did %llu tasks\n", rank, (unsigned long long)done);

  require(farsum_barrier(farsum_world()));
  const uint64_t expected = (uint64_t)(task_count - 1) * task_count * (2 * task_count - 1) / 6;
  const int is_right = rank != 0 || *(const uint64_t*)total == expected;
  if (rank == 0) printf("sum %llu, %s\n", (unsigned long long)*(const uint64_t*)total, is_right ? "right" : "WRONG");

  require(farsum_counter_free(&counter));
  require(farsum_window_free(&window));
  require(farsum_finalize());
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
