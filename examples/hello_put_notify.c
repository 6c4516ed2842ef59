/* Every rank puts a greeting into its right neighbour's memory, and sleeps until the one from the left has come.
 *
 *   farsum run -n 3 build/bin/example-hello_put_notify
 */
#include <farsum.h>
#include <stdio.h>
#include <stdlib.h>

enum { greeting_bytes = 64, greeting_slot = 0 };

static void require(farsum_status status) {
  if (status == FARSUM_OK) return;
  fprintf(stderr, "%s: %s\n", farsum_status_name(status), farsum_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  int rank, size;
  require(farsum_init(NULL));
  require(farsum_rank(farsum_world(), &rank));
  require(farsum_size(farsum_world(), &size));

  void* inbox;
  farsum_window window;
  require(farsum_window_allocate(farsum_world(), greeting_bytes, NULL, &inbox, &window));

  char greeting[greeting_bytes] = "";
  snprintf(greeting, sizeof greeting, "hello from rank %d of %d", rank, size);
  require(farsum_lock_all(window));
  require(farsum_put_notify(window, (rank + 1) % size, 0, greeting, sizeof greeting, greeting_slot));
  require(farsum_notify_wait(window, greeting_slot, 1));
  require(farsum_unlock_all(window));

  printf("rank %d got: %s\n", rank, (const char*)inbox);

  require(farsum_window_free(&window));
  require(farsum_finalize());
  return EXIT_SUCCESS;
}
