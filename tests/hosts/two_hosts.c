/* Rank 0 prints the hosts of all ranks in their order, then the ranks that share its own host; mpi_start.py builds and
 * runs it. */
#include <mpi.h>
#include <stdio.h>

enum { most_ranks = 16 };

int main(int argc, char** argv) {
  static char names[most_ranks][MPI_MAX_PROCESSOR_NAME];
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int rank, ranks, length, neighbours;
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Get_processor_name(name, &length);
  MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &neighbours);
  if (rank == 0) {
    for (int other = 0; other < ranks; ++other) printf("%s ", names[other]);
    printf("%d\n", neighbours);
    fflush(stdout);
  }
  MPI_Comm_free(&node);
  MPI_Finalize();
  return 0;
}
