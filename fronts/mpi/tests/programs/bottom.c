/* Origins and results that are lists of addresses over MPI_BOTTOM, as ARMCI makes them: two pieces, the first not the
 * lowest. */
#include "check.h"

enum { part = 8 };

static MPI_Datatype type_of_addresses(const double* first, const double* second) {
  const int lengths[2] = {1, 2};
  MPI_Aint addresses[2];
  MPI_Get_address(first, &addresses[0]);
  MPI_Get_address(second, &addresses[1]);
  MPI_Datatype type;
  MPI_Type_create_hindexed(2, lengths, addresses, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  double* memory;
  MPI_Win win;
  CALL(MPI_Win_allocate(part * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  for (int i = 0; i < part; ++i) memory[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);

  double ours[part] = {1, 2, 3, 4, 5, 6, 7, 8}, got[part] = {0};
  MPI_Datatype from = type_of_addresses(&ours[5], &ours[1]), to = type_of_addresses(&got[6], &got[2]);
  const int right = (rank + 1) % size;
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
  CALL(MPI_Put(MPI_BOTTOM, 1, from, right, 1, 3, MPI_DOUBLE, win));
  CALL(MPI_Win_flush(right, win));
  CALL(MPI_Accumulate(MPI_BOTTOM, 1, from, right, 1, 3, MPI_DOUBLE, MPI_SUM, win));
  CALL(MPI_Get(MPI_BOTTOM, 1, to, right, 1, 3, MPI_DOUBLE, win));
  CALL(MPI_Win_flush(right, win));
  CHECK(got[6] == 12 && got[2] == 4 && got[3] == 6, "got %g %g %g", got[6], got[2], got[3]);
  CALL(MPI_Get_accumulate(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, right, 1, 3, MPI_DOUBLE, MPI_SUM, win));
  CALL(MPI_Win_unlock(right, win));
  CHECK(got[6] == 12 && got[2] == 4 && got[3] == 6, "fetched %g %g %g", got[6], got[2], got[3]);
  MPI_Barrier(MPI_COMM_WORLD);

  CALL(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
  CHECK(memory[0] == 0 && memory[1] == 18 && memory[2] == 6 && memory[3] == 9 && memory[4] == 0, "holds %g %g %g",
        memory[1], memory[2], memory[3]);
  CALL(MPI_Win_unlock(rank, win));
  MPI_Type_free(&from);
  MPI_Type_free(&to);
  CALL(MPI_Win_free(&win));
  return finish();
}
