/* OPTIONS: --set FARSUM_MPI_STATS=1 --set FARSUM_MPI_STATS_FILE=/dev/stderr --say halo --say Fetch_and_op */
/* OPTIONS: --say maxloc --say '"type":"MPI_FLOAT","elements_at_least":256' --say '"own_count":10,"own_bytes":40' */
/* OPTIONS: --say 'to other hosts' */
/* OVER NODES: --say '"peer_count":10,"peer_bytes":40,"network_count":10,"network_bytes":40' */
/* What --stats counts: run_case looks for the window's name, an operation and an operator in the table and the lines of
 * the file, for what rank 0 did to itself, and for what rank 1 did to it over the network. */
#include "check.h"

int main(int argc, char** argv) {
  int* memory = NULL;
  int one = 1, old = 0;
  double values[100] = {0}, sums[100];
  float* parts = calloc((size_t)300 * 64, sizeof *parts);
  struct {
    double value;
    int index;
  } mine = {1.0, 0}, most;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  CALL(MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
  CALL(MPI_Win_set_name(window, "halo"));
  CALL(MPI_Win_lock_all(0, window));
  for (int i = 0; i < 10; ++i) CALL(MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, window));
  CALL(MPI_Win_unlock_all(window));
  CALL(MPI_Allreduce(values, sums, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  CALL(MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
  /* Where a rank's part is in place already, only the arguments for what is received count. */
  CALL(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, parts, 300, MPI_FLOAT, MPI_COMM_WORLD));
  free(parts);
  /* The window is left to MPI_Finalize. */
  return finish();
}
