/* What dlsym, dlvsym and dlopen are in the library behind this one, for lookups.c stands in for them, what this file
 * exports, and where an object keeps the functions that it calls.
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
typedef void* farsum_mpi_dlopen_function(const char* file, int mode);

/* Never NULL: they end a process that has none. What this library itself looks up or opens goes through these, never
 * through what lookups.c exports, which comes back here, to mutexes that the caller may hold; handles such as RTLD_NEXT
 * then count from here. */
farsum_mpi_dlsym_function* farsum_mpi_dlsym(void);
farsum_mpi_dlvsym_function* farsum_mpi_dlvsym(void);
farsum_mpi_dlopen_function* farsum_mpi_dlopen(void);

/* The function that this object itself defines under this name, in the version that a program would be linked to today;
 * or NULL. */
void* farsum_mpi_function_in(const struct link_map* object, const char* name);

/* The name that the object gave itself; NULL: none. */
const char* farsum_mpi_soname(const struct link_map* object);

/* The name of a library that this object is linked to, as the linker wrote it; NULL: it is linked to fewer. */
const char* farsum_mpi_needed(const struct link_map* object, size_t index);

/* A place where an object keeps the address of a function of another one. `is_for_calls`: it may still be empty, which
 * is an address of the object itself, until the first call. */
struct farsum_mpi_slot {
  void** place;
  const char* name;
  int is_for_calls;
};
typedef void farsum_mpi_slot_visitor(const struct farsum_mpi_slot* slot, void* data);

/* All of an object's. None on a processor that is not known here. */
void farsum_mpi_visit_slots(const struct link_map* object, farsum_mpi_slot_visitor* visit, void* data);

/* The function that this library exports under this name, or NULL. */
void* farsum_mpi_own_function(const char* name);

#endif
