/* A rank that has closed its connections and sleeps in its launcher's barrier still answers, by a thread of Farsum's
 * that calls UCX neither while the library does nor after it has destroyed its worker.
 *
 *   closes LIBRARY UCX ANSWERS
 */
#include <time.h>

#include "loaded.h"

int main(int count, char** words) {
  if (count != 4) return 2;
  void* library = load(words[1]);
  void* ucx = load(words[2]);
  int (*finalize)(void);
  unsigned (*asked_in_barrier)(void);
  int (*faults)(void);
  unsigned (*was_asked)(void);
  store(&finalize, RTLD_DEFAULT, "MPI_Finalize"); /* the preload's */
  store(&asked_in_barrier, library, "mpi_asked_in_barrier");
  store(&faults, ucx, "ucx_faults");
  store(&was_asked, ucx, "ucx_was_asked");

  CHECK(finalize() == 0);
  /* Nobody asks from here on, be the worker destroyed or not. */
  const unsigned asked = was_asked();
  const struct timespec looks = {0, 20000000};
  nanosleep(&looks, NULL);
  CHECK(was_asked() == asked);
  CHECK((asked_in_barrier() >= 5) == (strcmp(words[3], "1") == 0));
  CHECK(faults() == 0);
  return failures == 0 ? 0 : 1;
}
