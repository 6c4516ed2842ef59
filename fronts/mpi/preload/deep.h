/* Objects that are opened with RTLD_DEEPBIND, as plugins are that bring their own libraries. Such an object finds what
 * it calls in the libraries that it is linked to before it looks at what is preloaded: its MPI calls would go past this
 * library, and a window that it shares with the program would be two different ones. Here they are bound to this
 * library's PMPI_X, which no profiler stands in front of: the object would see none without Farsum, either. Nothing
 * else of it is changed.
 */
#ifndef FARSUM_MPI_PRELOAD_DEEP_H
#define FARSUM_MPI_PRELOAD_DEEP_H

/* Called first in each dlopen: whether farsum_mpi_open_deep is to be called instead. Where a bare name is found depends
 * on the caller of dlopen: that name is kept, and bound in the next look-up or dlopen. */
int farsum_mpi_opens_deep(const char* file, int mode);

/* The file is opened from this library, not from the caller of dlopen: of the libraries that it is linked to, those
 * that only the caller's DT_RPATH leads to are not found. */
void* farsum_mpi_open_deep(const char* file, int mode);

/* Binds what was opened by such a name. Called in each look-up with its handle, for a plugin's functions are looked up
 * before they are called. */
void farsum_mpi_bind_awaited(void* handle);

/* Whether this code is in an object that was bound here. */
int farsum_mpi_is_deep(const void* code);

#endif
