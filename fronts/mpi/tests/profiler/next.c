/* A profiler that looks up by RTLD_NEXT what it passes on, as Darshan does: NEXT is "PMPI_", or "MPI_" of one that
 * others may stand behind. LIFE, WINDOWS and OPERATIONS say which calls it has; it counts those by COUNTS. */
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { allocated, put, accumulated, freed, calls };

/* -1: it is not this profiler's. */
static int counts[calls] = {-1, -1, -1, -1};

__attribute__((constructor)) static void begin(void) {
#ifdef WINDOWS
  counts[allocated] = counts[freed] = 0;
#endif
#ifdef OPERATIONS
  counts[put] = counts[accumulated] = 0;
#endif
}

EXPORTED void COUNTS(int into[calls]);
EXPORTED void COUNTS(int into[calls]) { memcpy(into, counts, sizeof counts); }

static void find(void* slot, const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  memcpy(slot, &found, sizeof found);
}

#define WRAP(name, counting, parameters, arguments) \
  EXPORTED int MPI_##name parameters {              \
    static int(*next) parameters;                   \
    if (next == NULL) find(&next, NEXT #name);      \
    counting;                                       \
    return next arguments;                          \
  }

#ifdef LIFE
WRAP(Init, , (int* argc, char*** argv), (argc, argv))
WRAP(Init_thread, , (int* argc, char*** argv, int required, int* provided), (argc, argv, required, provided))
WRAP(Finalize, , (void), ())
#endif
#ifdef WINDOWS
WRAP(Win_allocate, ++counts[allocated],
     (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win),
     (size, disp_unit, info, comm, base, win))
WRAP(Win_free, ++counts[freed], (MPI_Win * win), (win))
#endif
#ifdef OPERATIONS
WRAP(Put, ++counts[put],
     (const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, int target_count,
      MPI_Datatype target_type, MPI_Win win),
     (origin, origin_count, origin_type, target, disp, target_count, target_type, win))
WRAP(Accumulate, ++counts[accumulated],
     (const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, int target_count,
      MPI_Datatype target_type, MPI_Op op, MPI_Win win),
     (origin, origin_count, origin_type, target, disp, target_count, target_type, op, win))
#endif
