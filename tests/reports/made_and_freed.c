/* Windows that are made, used once and freed, again and again, as PETSc's star forests do for each broadcast; over the
 * same memory, over halves of it that overlap, over memory that is new each time.
 *
 * RUN: as=same -- same
 * RUN: as=sliding -- sliding
 * RUN: as=fresh -- fresh
 * RUN: as=allocated -- allocated
 * RUN: as=dynamic -- dynamic
 *
 * EXPECTED: every round's values are right (MPI-4.1 12.2.1, 12.2.5: a window that is freed leaves its memory to the
 * program, with what was put), and the process keeps neither descriptors nor mappings nor memory of what is gone.
 * Microseconds a round are a note.
 */
#include <dirent.h>

#include "report.h"

enum { rounds = 60, items = 1 << 15, shift = 1000 };

static int lines_of(const char* file) {
  FILE* const opened = fopen(file, "r");
  int lines = 0, read;
  while ((read = fgetc(opened)) != EOF) lines += read == '\n';
  fclose(opened);
  return lines;
}

static int descriptors(void) {
  DIR* const folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static long resident_kilobytes(void) {
  long size = 0, resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  fclose(file);
  return 4 * resident;
}

static void use(MPI_Win win, volatile long* memory, int count, int round, const MPI_Aint* bases) {
  const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
  const MPI_Aint base = bases == NULL ? 0 : bases[next];
  /* A dynamic window counts bytes from its memory's address. */
  const MPI_Aint unit = bases == NULL ? 1 : (MPI_Aint)sizeof(long);
  const long value = 1000L * round + my_rank;
  memory[1] = -1;
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Put(&value, 1, MPI_LONG, next, base, 1, MPI_LONG, win));
  CALL(MPI_Put(&value, 1, MPI_LONG, next, base + unit * (count - 1), 1, MPI_LONG, win));
  CALL(MPI_Win_fence(0, win));
  const long expected = 1000L * round + before;
  CHECK(memory[0] == expected && memory[1] == -1 && memory[count - 1] == expected, "round %d: %ld, %ld, %ld, not %ld",
        round, memory[0], memory[1], memory[count - 1], expected);
}

static void create(long* memory, int count, int round) {
  MPI_Win win;
  CALL(MPI_Win_create(memory, count * (MPI_Aint)sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  use(win, memory, count, round, NULL);
  CALL(MPI_Win_free(&win));
  CHECK(memory[0] == memory[count - 1] && memory[1] == -1, "round %d, after the window: %ld %ld", round, memory[0],
        memory[1]);
}

static void allocate(int round) {
  long* memory;
  MPI_Win win;
  const int count = round % 2 == 0 ? 100 : items;
  CALL(
      MPI_Win_allocate(count * (MPI_Aint)sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  use(win, memory, count, round, NULL);
  CALL(MPI_Win_free(&win));
}

static void attach(long* memory, int round) {
  MPI_Win win;
  MPI_Aint base, bases[64];
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CALL(MPI_Win_attach(win, memory, items * (MPI_Aint)sizeof *memory));
  MPI_Get_address(memory, &base);
  MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
  use(win, memory, items, round, bases);
  CALL(MPI_Win_detach(win, memory));
  CALL(MPI_Win_free(&win));
}

static void do_round(const char* how, long* memory, int round) {
  if (strcmp(how, "same") == 0) create(memory, round % 2 == 0 ? 100 : items, round);
  if (strcmp(how, "sliding") == 0) create(memory + round % 7 * shift, items - (round % 2) * shift, round);
  if (strcmp(how, "allocated") == 0) allocate(round);
  if (strcmp(how, "dynamic") == 0) attach(memory, round);
  if (strcmp(how, "fresh") == 0) {
    const int count = items + round * 512;
    long* const fresh = malloc(count * sizeof *fresh);
    for (int i = 0; i < count; ++i) fresh[i] = i;
    create(fresh, count, round);
    for (int i = 2; i < count - 1; ++i) CHECK(fresh[i] == i, "round %d: item %d is %ld", round, i, fresh[i]);
    free(fresh);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* const how = argc > 1 ? argv[1] : "same";
  long* const memory = malloc((items + 7 * shift) * sizeof *memory);
  memset(memory, 0, (items + 7 * shift) * sizeof *memory);
  for (int round = 0; round < rounds / 3; ++round) do_round(how, memory, round);
  const int files = descriptors(), maps = lines_of("/proc/self/maps");
  const long resident = resident_kilobytes();
  const double began = MPI_Wtime();
  for (int round = 0; round < rounds; ++round) do_round(how, memory, round);
  NOTE("%.0f us a round", (MPI_Wtime() - began) / rounds * 1e6);
  CHECK(descriptors() <= files + 4, "%d descriptors, %d before", descriptors(), files);
  CHECK(lines_of("/proc/self/maps") <= maps + 20, "%d mappings, %d before", lines_of("/proc/self/maps"), maps);
  CHECK(resident_kilobytes() <= resident + 20000, "%ld kB resident, %ld before", resident_kilobytes(), resident);
  free(memory);
  return finish();
}
