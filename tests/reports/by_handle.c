/* MPI that a program opens itself and looks up with dlsym, as ctypes and MPI.jl do: it is linked to no MPI library.
 *
 * RUN: link=no option=--abi={abi} option=--stats hears=farsum|Farsum
 *
 * EXPECTED: windows work, and the user who asks for statistics learns what Farsum carried out, or is told that it was
 * not asked. The calls are the library's own (MPI-4.1 2.6.2 leaves how they are found to the system).
 */
#include <dlfcn.h>

#include "report.h"

#ifdef OPEN_MPI
static const char* const library_name = "libmpi.so.40";
#elif defined(MPI_ABI)
static const char* const library_name = "libmpi_abi.so.1";
#else
static const char* const library_name = "libmpi.so.12";
#endif

static void* library;

static void* find(const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) {
    printf("WRONG: %s is not in %s\n", name, library_name);
    exit(1);
  }
  return found;
}

/* Open MPI's handles are addresses of its data, all others' are numbers. */
#ifdef OPEN_MPI
#define COMM_WORLD ((MPI_Comm)find("ompi_mpi_comm_world"))
#define INFO_NONE ((MPI_Info)find("ompi_mpi_info_null"))
#define TYPE_LONG ((MPI_Datatype)find("ompi_mpi_long"))
#define OP_SUM ((MPI_Op)find("ompi_mpi_op_sum"))
#else
#define COMM_WORLD MPI_COMM_WORLD
#define INFO_NONE MPI_INFO_NULL
#define TYPE_LONG MPI_LONG
#define OP_SUM MPI_SUM
#endif

/* The library's call of this name, of the type that the header gives it. */
#define THE(call) ((__typeof__(&call))find(#call))

int main(int argc, char** argv) {
  library = dlopen(library_name, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    printf("WRONG: %s\n", dlerror());
    return 1;
  }
  THE(MPI_Init)(&argc, &argv);
  THE(MPI_Comm_rank)(COMM_WORLD, &my_rank);
  THE(MPI_Comm_size)(COMM_WORLD, &ranks);
  long *memory, value = 1;
  MPI_Win win;
  THE(MPI_Win_allocate)(64, sizeof *memory, INFO_NONE, COMM_WORLD, &memory, &win);
  THE(MPI_Win_fence)(0, win);
  for (int rank = 0; rank < ranks; ++rank)
    THE(MPI_Accumulate)(&value, 1, TYPE_LONG, rank, 3, 1, TYPE_LONG, OP_SUM, win);
  THE(MPI_Win_fence)(0, win);
  CHECK(memory[3] == ranks, "%ld sums, not %d", memory[3], ranks);
  THE(MPI_Win_free)(&win);
  long mine = wrong, all = 0;
  THE(MPI_Allreduce)(&mine, &all, 1, TYPE_LONG, OP_SUM, COMM_WORLD);
  if (my_rank == 0 && all == 0) printf(" No Errors\n");
  THE(MPI_Finalize)();
  return all != 0;
}
