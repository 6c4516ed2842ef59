/* Types of very many irregular blocks, at the origin and at the target, as scatters of sparse matrices have them.
 *
 * RUN: as=mapped on=node -- 1000000
 * RUN: as=by_messages on=node with=farsum set=FARSUM_PATH=owner -- 1000000
 * RUN: as=own_mapping on=node -- 1000000 shared
 * RUN: as=over_hosts on=hosts -- 1000000
 *
 * EXPECTED: right values (MPI-4.1 12.3, 5.1.2), in a time that grows with the blocks and not with their square: within
 * the suite's limit for a program. Seconds are a note.
 */
#include <sys/mman.h>

#include "report.h"

static unsigned random_state = 12345;

static unsigned random_number(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 4;
}

/* One item of each pair, the pairs in no order. */
static int* irregular_places(int count) {
  int* const places = malloc(count * sizeof *places);
  for (int i = 0; i < count; ++i) places[i] = 2 * i + (int)(random_number() & 1);
  for (int i = count - 1; i > 0; --i) {
    const int other = (int)(random_number() % (unsigned)(i + 1)), kept = places[i];
    places[i] = places[other];
    places[other] = kept;
  }
  return places;
}

static MPI_Datatype type_of(const int* places, int count) {
  MPI_Datatype type;
  MPI_Type_create_indexed_block(count, 1, places, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static double lap(double* since) {
  const double now = MPI_Wtime(), seconds = now - *since;
  *since = now;
  return seconds;
}

static void operate(int count, MPI_Win win) {
  int *here = irregular_places(count), *there = irregular_places(count);
  MPI_Datatype at_origin = type_of(here, count), at_target = type_of(there, count);
  double* const values = calloc(2 * (size_t)count, sizeof *values);
  double* const got = calloc(2 * (size_t)count, sizeof *got);
  for (int i = 0; i < count; ++i) values[here[i]] = i;
  double since = MPI_Wtime();
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  CALL(MPI_Put(values, 1, at_origin, 0, 0, 1, at_target, win));
  CALL(MPI_Win_flush(0, win));
  const double put = lap(&since);
  CALL(MPI_Accumulate(values, 1, at_origin, 0, 0, 1, at_target, MPI_SUM, win));
  CALL(MPI_Win_flush(0, win));
  const double accumulated = lap(&since);
  CALL(MPI_Get_accumulate(values, 1, at_origin, got, 1, at_origin, 0, 0, 1, at_target, MPI_SUM, win));
  CALL(MPI_Win_flush(0, win));
  const double fetched = lap(&since);
  for (int i = 0; i < count; ++i) CHECK(got[here[i]] == 2.0 * i, "fetched item %d is %g", i, got[here[i]]);
  memset(got, 0, 2 * (size_t)count * sizeof *got);
  since = MPI_Wtime();
  CALL(MPI_Get(got, 1, at_origin, 0, 0, 1, at_target, win));
  CALL(MPI_Win_unlock(0, win));
  printf("note: %d blocks: put %.2f, accumulate %.2f, get-accumulate %.2f, get %.2f s\n", count, put, accumulated,
         fetched, lap(&since));
  for (int i = 0; i < count; ++i) CHECK(got[here[i]] == 3.0 * i, "item %d is %g", i, got[here[i]]);
  MPI_Type_free(&at_origin);
  MPI_Type_free(&at_target);
  free(here);
  free(there);
  free(values);
  free(got);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int count = argc > 1 ? atoi(argv[1]) : 1000;
  const MPI_Aint bytes = my_rank == 0 ? 2 * (MPI_Aint)count * (MPI_Aint)sizeof(double) : 0;
  double* memory = NULL;
  MPI_Win win;
  if (argc > 2) {
    if (bytes > 0) memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CALL(MPI_Win_create(memory, bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  } else {
    CALL(MPI_Win_allocate(bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  }
  for (int i = 0; i < 2 * count && my_rank == 0; ++i) memory[i] = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == 1) operate(count, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == 0) {
    long untouched = 0;
    for (int i = 0; i < 2 * count; ++i) untouched += memory[i] == -1;
    CHECK(untouched == count, "%ld items between the blocks are as they were, not %d", untouched, count);
  }
  CALL(MPI_Win_free(&win));
  if (argc > 2 && my_rank == 0) munmap(memory, bytes);
  return finish();
}
