/* The function of Open MPI that its threads call again and again while they wait: passed on to the library's own, and
 * the front told.
 */
#include <stdatomic.h>

#include "polls.h"
#include "preload_abi.h"
#include "scope.h"

#ifdef FARSUM_MPI_ABI_openmpi

/* Open MPI 5 answers how much it found; version 4 nothing, and nobody looks at what is passed on then. */
typedef int progress_function(void);
__attribute__((visibility("default"))) progress_function opal_progress;

/* Of the process's one Open MPI. */
static progress_function* _Atomic librarys;

int opal_progress(void) {
  /* Relaxed: the same for all who look it up. */
  progress_function* progress = atomic_load_explicit(&librarys, memory_order_relaxed);
  if (progress == NULL) {
    FARSUM_MPI_CALLERS_FUNCTION(progress_function, found, "libopen-pal", "opal_progress");
    progress = found;
    atomic_store_explicit(&librarys, progress, memory_order_relaxed);
  }
  const int events = progress();
  farsum_mpi_has_polled();
  return events;
}

#endif
