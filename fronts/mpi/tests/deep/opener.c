/* The program of the stand-ins calls MPI through this library, which is linked to no MPI: the call is the preload's. */
#include "opener.h"

#include <stddef.h>

__attribute__((weak)) int MPI_Win_fence(int, int);

int call_mpi(void) { return MPI_Win_fence == NULL ? 0 : MPI_Win_fence(0, 0); }
