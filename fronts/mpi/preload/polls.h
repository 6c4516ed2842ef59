/* Whom to tell when a thread has polled inside the MPI library: the front, once there is something for it to do then.
 */
#ifndef FARSUM_MPI_PRELOAD_POLLS_H
#define FARSUM_MPI_PRELOAD_POLLS_H

#include "calls.h"

/* From now on; NULL: nobody. */
void farsum_mpi_tell_of_polls(farsum_mpi_poll_function* whom);
/* By the thread that has. */
void farsum_mpi_has_polled(void);

#endif
