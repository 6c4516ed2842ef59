/* OVER NODES: --set ATTENDS=1
 * A rank that waits in the library serves what ranks of other nodes ask of it: its agent sleeps meanwhile. Where other
 * work takes the processors it may be the agent all the same, so that this is tried for a while.
 */
#include <dirent.h>
#include <time.h>

#include "check.h"

enum { operations = 500, patience_s = 60 };

/* How often the agent of this process has slept; negative where there is none. */
static long sleeps_of_agent(void) {
  char path[300], line[200], name[200];
  long sleeps = -1;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == NULL) return sleeps;
  for (const struct dirent* task = readdir(tasks); task != NULL; task = readdir(tasks)) {
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    FILE* file = fopen(path, "r");
    long count = 0;
    name[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
      sscanf(line, "Name: %199s", name);
      sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    }
    if (file != NULL) fclose(file);
    if (strcmp(name, "farsum-agent") == 0) sleeps = count;
  }
  closedir(tasks);
  return sleeps;
}

/* Rank 1 draws from rank 0's word, while rank 0 waits for it in one kind of call or another; how often its agent slept.
 */
static long draw(MPI_Win win, int kind, int64_t* drawn) {
  const long before = sleeps_of_agent();
  if (my_rank(MPI_COMM_WORLD) == 1) {
    const int64_t one = 1;
    int64_t number = -1;
    for (int i = 0; i < operations; ++i) {
      CALL(MPI_Fetch_and_op(&one, &number, MPI_INT64_T, 0, 0, MPI_SUM, win));
      CALL(MPI_Win_flush(0, win));
      CHECK(number == *drawn, "%ld was drawn, not %ld", (long)number, (long)*drawn);
      ++*drawn;
    }
    if (kind == 1) CALL(MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD));
  } else {
    *drawn += operations;
    if (kind == 1) CALL(MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  if (kind == 2) {
    MPI_Request request;
    CALL(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
  return sleeps_of_agent() - before;
}

int main(int argc, char** argv) {
  int64_t* word;
  int64_t drawn = 0;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  const int must_attend = getenv("ATTENDS") != NULL;
  CALL(MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &win));
  *word = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_lock_all(0, win));
  CHECK(!must_attend || sleeps_of_agent() >= 0, "there is no agent");
  for (int kind = 0; kind < 3; ++kind) {
    const time_t end = time(NULL) + patience_s / 3;
    int go_on = 1;
    long least = operations;
    while (go_on) {
      const long sleeps = draw(win, kind, &drawn);
      if (sleeps < least) least = sleeps;
      go_on = must_attend && least > operations / 4 && time(NULL) < end;
      MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    CHECK(!must_attend || my_rank(MPI_COMM_WORLD) != 0 || least <= operations / 4,
          "the agent slept %ld times between %d operations in a wait of kind %d", least, operations, kind);
  }
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Win_free(&win));
  return finish();
}
