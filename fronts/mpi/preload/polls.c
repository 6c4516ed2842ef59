#include "polls.h"

#include <errno.h>
#include <stdatomic.h>

static farsum_mpi_poll_function* _Atomic told;

/* Release and acquire: what the front needs for it is there. */
void farsum_mpi_tell_of_polls(farsum_mpi_poll_function* whom) {
  atomic_store_explicit(&told, whom, memory_order_release);
}

void farsum_mpi_has_polled(void) {
  farsum_mpi_poll_function* const whom = atomic_load_explicit(&told, memory_order_acquire);
  if (whom == NULL) return;
  const int error = errno;
  whom();
  errno = error;
}
