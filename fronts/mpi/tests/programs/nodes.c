/* RANKS: 3 4
 * OPTIONS: --set MPIR_CVAR_NUM_CLIQUES=2 --say-not "MPI library's own"
 * Windows over ranks of several nodes, which MPICH makes of one; under other libraries all ranks are on one. Windows of
 * the whole job, of ranks that know each other already and of some that do not, and of one node. */
#include "check.h"

static MPI_Win make(int flavor, MPI_Comm comm, long** base) {
  const MPI_Aint bytes = 8 * ranks_of(comm);
  MPI_Win win = MPI_WIN_NULL;
  if (flavor == MPI_WIN_FLAVOR_ALLOCATE) {
    CALL(MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, base, &win));
  } else {
    *base = malloc((size_t)bytes);
    CALL(MPI_Win_create(*base, bytes, 8, MPI_INFO_NULL, comm, &win));
  }
  for (int i = 0; i < ranks_of(comm); ++i) (*base)[i] = 0;
  return win;
}

/* Of all ranks the first one that has memory, also where that is on another node and nothing of it is seen from here.
 */
static void query_first(MPI_Win win) {
  int version = 0, subversion = 0;
  MPI_Get_version(&version, &subversion);
  if (version < 4 || (version == 4 && subversion < 1)) return; /* only windows of shared memory are asked there */
  MPI_Aint bytes[2] = {-1, -2};
  int unit = 0;
  void* base[2] = {NULL, NULL};
  CALL(MPI_Win_shared_query(win, 0, &bytes[0], &unit, &base[0]));
  CALL(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes[1], &unit, &base[1]));
  CHECK(bytes[0] == bytes[1] && base[0] == base[1], "%ld bytes at %p, not %ld at %p", (long)bytes[1], base[1],
        (long)bytes[0], base[0]);
}

/* Everybody adds to a word of everybody and reads it: by locks, by fences, by posts. */
static void use(int flavor, MPI_Comm comm) {
  long* base = NULL;
  MPI_Win win = make(flavor, comm, &base);
  const int rank = my_rank(comm), size = ranks_of(comm);
  query_first(win);
  MPI_Barrier(comm);
  for (int target = 0; target < size; ++target) {
    const long mine = 1000 + rank;
    CALL(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    CALL(MPI_Accumulate(&mine, 1, MPI_LONG, target, rank, 1, MPI_LONG, MPI_SUM, win));
    CALL(MPI_Win_unlock(target, win));
  }
  MPI_Barrier(comm);
  CALL(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
  for (int target = 0; target < size; ++target) {
    long got = -1;
    CALL(MPI_Get(&got, 1, MPI_LONG, target, (rank + 1) % size, 1, MPI_LONG, win));
    CALL(MPI_Win_fence(0, win));
    CHECK(got == 1000 + (rank + 1) % size, "of rank %d: %ld", target, got);
  }
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  MPI_Group all, others;
  CALL(MPI_Comm_group(comm, &all));
  CALL(MPI_Group_excl(all, 1, &rank, &others));
  CALL(MPI_Win_post(others, 0, win));
  CALL(MPI_Win_start(others, 0, win));
  for (int target = 0; target < size; ++target) {
    const long mine = 2000 + rank;
    if (target != rank) CALL(MPI_Put(&mine, 1, MPI_LONG, target, rank, 1, MPI_LONG, win));
  }
  CALL(MPI_Win_complete(win));
  CALL(MPI_Win_wait(win));
  for (int i = 0; i < size; ++i) CHECK(i == rank || base[i] == 2000 + i, "word %d is %ld", i, base[i]);
  MPI_Group_free(&all);
  MPI_Group_free(&others);
  CALL(MPI_Win_free(&win));
  if (flavor == MPI_WIN_FLAVOR_CREATE) free(base);
}

static void use_dynamic(MPI_Comm comm) {
  MPI_Win win;
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
  const int rank = my_rank(comm), size = ranks_of(comm);
  long word = rank;
  CALL(MPI_Win_attach(win, &word, sizeof word));
  MPI_Aint mine, *all = malloc((size_t)size * sizeof *all);
  MPI_Get_address(&word, &mine);
  MPI_Allgather(&mine, 1, MPI_AINT, all, 1, MPI_AINT, comm);
  CALL(MPI_Win_lock_all(0, win));
  for (int target = 0; target < size; ++target) {
    long got = -1;
    CALL(MPI_Get(&got, 1, MPI_LONG, target, all[target], 1, MPI_LONG, win));
    CALL(MPI_Win_flush(target, win));
    CHECK(got == target, "of rank %d: %ld", target, got);
  }
  CALL(MPI_Win_unlock_all(win));
  MPI_Barrier(comm);
  CALL(MPI_Win_detach(win, &word));
  CALL(MPI_Win_free(&win));
  free(all);
}

/* Shared memory ends at the node; what is asked for beyond is the library's to answer. */
static void ask_for_shared_memory(MPI_Comm node) {
  MPI_Win win;
  long* base;
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  if (MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, copy, &base, &win) == MPI_SUCCESS) MPI_Win_free(&win);
  MPI_Comm_free(&copy);
  CALL(MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, node, &base, &win));
  CALL(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  MPI_Comm node, ends, reversed;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  ask_for_shared_memory(node);
  use(MPI_WIN_FLAVOR_ALLOCATE, node);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 || rank == size - 1 ? 0 : MPI_UNDEFINED, 0, &ends);
  if (ends != MPI_COMM_NULL) use(MPI_WIN_FLAVOR_ALLOCATE, ends);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  use(MPI_WIN_FLAVOR_CREATE, reversed);
  for (int round = 0; round < 5; ++round) use(MPI_WIN_FLAVOR_ALLOCATE, MPI_COMM_WORLD);
  use(MPI_WIN_FLAVOR_CREATE, MPI_COMM_WORLD);
  use_dynamic(MPI_COMM_WORLD);
  if (ends != MPI_COMM_NULL) MPI_Comm_free(&ends);
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&node);
  return finish();
}
