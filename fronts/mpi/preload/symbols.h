/* What dlsym and dlvsym are in the library behind this one, for lookups.c stands in for them, and what this file
 * exports.
 *
 * Read from the tables of the objects that were there when the process started, which stay: no lock is taken, nothing
 * allocated and no other function called, because the runtimes of sanitizers look functions up before they are ready
 * for any call.
 */
#ifndef FARSUM_MPI_PRELOAD_SYMBOLS_H
#define FARSUM_MPI_PRELOAD_SYMBOLS_H

#include <stddef.h>

struct link_map;

typedef void* farsum_mpi_dlsym_function(void* handle, const char* name);
typedef void* farsum_mpi_dlvsym_function(void* handle, const char* name, const char* version);

/* Never NULL: they end a process that has none. What this library itself looks up goes through these; handles such as
 * RTLD_NEXT then count from here. */
farsum_mpi_dlsym_function* farsum_mpi_dlsym(void);
farsum_mpi_dlvsym_function* farsum_mpi_dlvsym(void);

/* The function that this object itself defines under this name, in the version that a program would be linked to today;
 * or NULL. */
void* farsum_mpi_function_in(const struct link_map* object, const char* name);

/* The name of a library that this object is linked to, as the linker wrote it; NULL: it is linked to fewer. */
const char* farsum_mpi_needed(const struct link_map* object, size_t index);

/* The function that this library exports under this name, or NULL. */
void* farsum_mpi_own_function(const char* name);

#endif
