/* OPTIONS: --limit 110
 * Windows of 1 GiB and more: operations at the far end, and at offsets that an int does not hold. */
#include <stdint.h>
#include <sys/mman.h>

#include "check.h"

enum { mib = 1 << 20, block = 1 << 16 };

static long available_mib(void) {
  long kib = 0;
  char line[256];
  FILE* info = fopen("/proc/meminfo", "r");
  while (info != NULL && fgets(line, sizeof line, info) != NULL) {
    if (sscanf(line, "MemAvailable: %ld", &kib) == 1) break;
  }
  if (info != NULL) fclose(info);
  return kib / 1024;
}

/* The last element of each rank's part, alone and in a block that ends there, by its right neighbour. */
static void at_the_end_of(MPI_Win win, MPI_Aint bytes, const int64_t* mine) {
  static int64_t values[block], got[block];
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  const MPI_Aint elements = bytes / (MPI_Aint)sizeof(int64_t), first = elements - block;
  for (int i = 0; i < block; ++i) values[i] = rank * 1000003L + i;
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Put(values, block, MPI_INT64_T, left, first, block, MPI_INT64_T, win));
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Accumulate(values, block, MPI_INT64_T, left, first, block, MPI_INT64_T, MPI_SUM, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(mine[elements - 1] == 2 * (right * 1000003L + block - 1), "the last element is %ld", (long)mine[elements - 1]);
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Fetch_and_op(&values[1], &got[0], MPI_INT64_T, left, elements - 1, MPI_SUM, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(got[0] == 2 * values[block - 1], "fetched %ld", (long)got[0]);
  CALL(MPI_Get(got, block, MPI_INT64_T, left, first, block, MPI_INT64_T, win));
  CALL(MPI_Win_fence(0, win));
  for (int i = 0; i < block - 1; ++i) CHECK(got[i] == 2 * values[i], "element %d is %ld", i, (long)got[i]);
  CHECK(got[block - 1] == 2 * values[block - 1] + values[1], "the last one is %ld", (long)got[block - 1]);
}

static void allocated(MPI_Aint bytes) {
  int64_t* memory = NULL;
  MPI_Win win;
  CALL(MPI_Win_allocate(bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  at_the_end_of(win, bytes, memory);
  CALL(MPI_Win_free(&win));
}

static void created(MPI_Aint bytes) {
  MPI_Win win;
  int64_t* memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED, "no memory");
  CALL(MPI_Win_create(memory, bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  at_the_end_of(win, bytes, memory);
  CALL(MPI_Win_free(&win));
  munmap(memory, (size_t)bytes);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  long least = 0;
  const long mine = available_mib();
  MPI_Allreduce(&mine, &least, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
  if (least < 6 * 1024) {
    if (my_rank(MPI_COMM_WORLD) == 0) printf("%ld MiB of memory are free; this needs 6 GiB\n", least);
    MPI_Finalize();
    return 77;
  }
  allocated((MPI_Aint)1024 * mib);
  allocated((MPI_Aint)2304 * mib); /* past 2^31 */
  created((MPI_Aint)1024 * mib);
  return finish();
}
