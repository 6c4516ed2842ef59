/* Which of a process's UCXs a library calls. */
#ifndef FARSUM_MPI_PRELOAD_UCX_SCOPE_H
#define FARSUM_MPI_PRELOAD_UCX_SCOPE_H

/* The function of this name, a literal, that the library around `caller` was linked to; ends the process where there is
 * none. */
void* farsum_mpi_ucx_function(const void* caller, const char* name);

#endif
