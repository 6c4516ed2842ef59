/* A profiler as tools write them: counts calls and passes each on under its second name. */
#include <mpi.h>

#define EXPORTED __attribute__((visibility("default")))

static int allocated, put, accumulated, freed;

EXPORTED int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  ++allocated;
  return PMPI_Win_allocate(size, disp_unit, info, comm, base, win);
}

EXPORTED int MPI_Put(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
                     int target_count, MPI_Datatype target_type, MPI_Win win) {
  ++put;
  return PMPI_Put(origin, origin_count, origin_type, target, disp, target_count, target_type, win);
}

EXPORTED int MPI_Accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
                            int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  ++accumulated;
  return PMPI_Accumulate(origin, origin_count, origin_type, target, disp, target_count, target_type, op, win);
}

EXPORTED int MPI_Win_free(MPI_Win* win) {
  ++freed;
  return PMPI_Win_free(win);
}

EXPORTED void profiler_counts(int counts[4]);
EXPORTED void profiler_counts(int counts[4]) {
  counts[0] = allocated;
  counts[1] = put;
  counts[2] = accumulated;
  counts[3] = freed;
}
