/* A program that locks its memory, as mlockall(2) does: the front unmaps what nobody uses before. */
#ifndef FARSUM_MPI_PRELOAD_LOCKING_H
#define FARSUM_MPI_PRELOAD_LOCKING_H

#include "calls.h"

/* Whom to tell of it; NULL: nobody. Any thread may call. */
void farsum_mpi_tell_of_locking(farsum_mpi_front_before_mlockall_function* front);

#endif
