/* Parts of few bytes, of no multiple of a word: each rank's own, whichever library allocates them.
 *
 * RUN: ranks=2,3
 *
 * EXPECTED: what is put or summed into a rank's part is in that part, and in no other (MPI-4.1 12.2.2: each process
 * gets memory of at least its size; 12.3).
 */
#include "report.h"

enum { sizes = 6, most = 24 };

static const int size_of[sizes] = {1, 2, 4, 5, 12, 20};

static void use(int bytes, int is_shared) {
  unsigned char *memory, one[most], seen[most];
  MPI_Win win;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  if (is_shared) CALL(MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &memory, &win));
  if (!is_shared) CALL(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  MPI_Info_free(&info);
  const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
  memset(memory, 10 * my_rank, bytes);
  memset(one, my_rank + 1, sizeof one);
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  CALL(MPI_Accumulate(one, bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, MPI_BXOR, win));
  CALL(MPI_Get(seen, bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, win));
  CALL(MPI_Win_unlock(next, win));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < bytes; ++i) {
    const int expected = (10 * my_rank) ^ (before + 1);
    CHECK(memory[i] == expected, "%d bytes%s, byte %d is %d, not %d", bytes, is_shared ? ", shared" : "", i, memory[i],
          expected);
  }
  CALL(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm node;
  int ranks_here = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &ranks_here);
  MPI_Comm_free(&node);
  for (int i = 0; i < sizes; ++i) {
    use(size_of[i], 0);
    if (ranks_here == ranks) use(size_of[i], 1);
  }
  return finish();
}
