/* An MPI program: every rank draws tickets from a counter in memory of rank 0's own. All tickets must be different
 * ones, which their number and sum tell. Rank 0 prints "N ranks on M hosts: right". */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { tickets_each = 100, most_ranks = 64 };

static long draw_all(MPI_Win window) {
  const long one = 1;
  long sum = 0;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < tickets_each; ++i) {
    long ticket = 0;
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    sum += ticket;
  }
  MPI_Win_unlock_all(window);
  return sum;
}

static int hosts_of(int rank, int ranks) {
  static char names[most_ranks][MPI_MAX_PROCESSOR_NAME];
  char mine[MPI_MAX_PROCESSOR_NAME] = {0};
  int length, hosts = 0;
  MPI_Get_processor_name(mine, &length);
  MPI_Gather(mine, sizeof mine, MPI_CHAR, names, sizeof mine, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < ranks; ++i) {
    int is_new = 1;
    for (int j = 0; j < i; ++j) is_new = is_new && strcmp(names[i], names[j]) != 0;
    hosts += is_new;
  }
  return hosts;
}

int main(int argc, char** argv) {
  int rank, ranks;
  long counter = 0, sum;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Win_create(&counter, rank == 0 ? sizeof counter : 0, sizeof counter, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const long mine = draw_all(window);
  MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Win_free(&window);
  const int hosts = hosts_of(rank, ranks);
  const long drawn = (long)ranks * tickets_each;
  const int is_wrong = rank == 0 && (counter != drawn || sum != drawn * (drawn - 1) / 2);
  if (rank == 0) printf("%d ranks on %d hosts: %s\n", ranks, hosts, is_wrong ? "WRONG" : "right");
  MPI_Finalize();
  return is_wrong;
}
