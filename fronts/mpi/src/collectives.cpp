// MPI_Barrier where ranks of the node have fewer processors than they are. Libraries poll in it, and a rank that polls
// keeps the one it waits for from running: 8 ms for 4 ranks on 2 processors, where sleepers take 30 us. Everywhere
// else, as over several nodes, it is the library's.
#include "attending.hpp"
#include "calls.hpp"
#include "farsum.h"
#include "front.hpp"
#include "guard.hpp"

namespace farsum::mpi {
namespace {

int of_library(MPI_Comm comm) {
  const HearsOfOthers hears;
  const LibraryWait wait;
  return library().Barrier(comm);
}

int barrier(MPI_Comm comm) {
  Front& front = Front::get();
  int inter = 1;
  if (comm == MPI_COMM_NULL || !front.life.engine_runs() || library().Comm_test_inter(comm, &inter) != MPI_SUCCESS ||
      inter != 0) {
    return of_library(comm);
  }
  GroupLease lease = front.engine_group(comm, Groups::Reach::this_node);
  // farsum_barrier, where it ends well, has heard of the others by itself. A dead rank is the library's to report.
  if (lease && farsum_barrier(lease.group()) == FARSUM_OK) return MPI_SUCCESS;
  // A handler that the library calls may come back here.
  lease.end();
  return of_library(comm);
}

}  // namespace

void put_collective_calls(farsum_mpi_calls& active) {
  const Front& front = Front::get();
  // All ranks of the node decide alike. Threads that meet on several communicators at once would need an agreement each
  // time, which costs what is saved.
  if (front.ranks.threads_multiple() || !front.ranks.node_is_crowded()) return;
  active.Barrier = guard::Barrier<barrier>::call;
}

}  // namespace farsum::mpi
