/* Every rank adds one into the memory of rank 0, which need not call anything for it.
 *
 *   farsum run -n 4 build/bin/example-first
 */
#include <farsum.h>
#include <stdio.h>

int main(void) {
  int rank;
  void* memory;
  farsum_window window;
  const double one = 1;

  farsum_init(NULL);
  farsum_rank(farsum_world(), &rank);
  farsum_window_allocate(farsum_world(), sizeof one, NULL, &memory, &window);

  farsum_lock(window, 0, FARSUM_LOCK_SHARED);
  farsum_accumulate(window, 0, 0, &one, 1, FARSUM_DOUBLE, FARSUM_SUM);
  farsum_unlock(window, 0);

  farsum_barrier(farsum_world());
  if (rank == 0) printf("%g ranks have added one\n", *(const double*)memory);
  farsum_window_free(&window);
  return farsum_finalize() == FARSUM_OK ? 0 : 1;
}
