/* What dlsym finds by RTLD_NEXT for one of its callers. The library behind can be asked for this library only: it goes
 * by who called. */
#ifndef FARSUM_MPI_PRELOAD_NEXT_H
#define FARSUM_MPI_PRELOAD_NEXT_H

/* The function of this name that comes next behind the object around `caller`, in the order in which that object's
 * look-ups go; NULL: there is none. `second` counts instead of `name` for libraries that the program has opened for all
 * since it started. */
void* farsum_mpi_next_function(const void* caller, const char* name, const char* second);

/* The function of this name in what the object around `caller` is linked to, of an object that was opened since the
 * program started; else NULL. */
void* farsum_mpi_needed_function(const void* caller, const char* name);

/* Called once, when this library begins: what is there now was loaded with the program. */
void farsum_mpi_sees_start(void);

#endif
