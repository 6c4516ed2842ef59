/* What a program gets that looks MPI's calls up by a handle of its own, or by RTLD_NEXT; and an object that was opened
 * with RTLD_DEEPBIND, by RTLD_DEFAULT. */
#ifndef FARSUM_MPI_PRELOAD_SERVED_H
#define FARSUM_MPI_PRELOAD_SERVED_H

/* This library's function, where the look-up of `name` by `handle` would end in the MPI library's; else NULL: it is to
 * be passed on. `version` is NULL where none was asked for. */
void* farsum_mpi_served(void* handle, const char* name, const char* version, const void* caller);

/* Whether a name may be one that an MPI library has. */
int farsum_mpi_is_of_library(const char* name);

/* This library's function for what a look-up of `name` has found; NULL: that is not the MPI library's, or nothing that
 * this library has. */
void* farsum_mpi_served_for(const void* found, const char* name);

/* The MPI library of this process, looked for now if it was not there before; NULL: there is none of this kind. */
void* farsum_mpi_library_handle(void);
/* Whether the calling thread looks for that library now: there is none for it meanwhile. */
int farsum_mpi_is_resolving(void);

#endif
