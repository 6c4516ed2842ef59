/* mlockall, as programs call it that must not be paged out, under a finite limit of locked memory; the limit is lowered
 * and CAP_IPC_LOCK dropped for it, or the machine's whole memory were locked.
 *
 * RUN: as=all limit=memlock:2G -- all
 * RUN: as=all_before_MPI limit=memlock:2G -- before
 * RUN: as=later limit=memlock:8M -- later
 *
 * EXPECTED: mlockall(2) succeeds where all that is mapped is below the limit, as it is for libraries (300 MB and less);
 * what is allocated after it comes, and windows work. `later` locks what is mapped from then on only: the few pages of
 * a window and a small buffer fit.
 */
#include <errno.h>
#include <sys/mman.h>

#include "report.h"

enum { most_kilobytes = 4 << 20 };

static long kilobytes(const char* key) {
  char line[256];
  long found = -1;
  FILE* const status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status))
    if (strncmp(line, key, strlen(key)) == 0) found = atol(line + strlen(key) + 1);
  fclose(status);
  return found;
}

static void use_a_window(void) {
  const int peer = 1 - my_rank;
  char *memory, value = (char)(5 + my_rank);
  MPI_Win win;
  CALL(MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win));
  CALL(MPI_Put(&value, 1, MPI_CHAR, peer, 7, 1, MPI_CHAR, win));
  CALL(MPI_Win_unlock(peer, win));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(memory[7] == 5 + peer, "the put: %d", memory[7]);
  CALL(MPI_Win_free(&win));
}

static void lock(int what) {
  const int result = mlockall(what);
  CHECK(result == 0, "mlockall: %s", strerror(errno));
  CHECK(kilobytes("VmSize") < most_kilobytes, "%ld kB are mapped", kilobytes("VmSize"));
}

int main(int argc, char** argv) {
  if (told(argc, argv, "before")) lock(MCL_CURRENT | MCL_FUTURE);
  begin(&argc, &argv);
  use_a_window();
  if (told(argc, argv, "all")) lock(MCL_CURRENT | MCL_FUTURE);
  if (told(argc, argv, "later")) lock(MCL_FUTURE);
  for (int i = 0; i < 10; ++i) use_a_window();
  void* volatile buffer = malloc(1 << 20);
  CHECK(buffer != NULL, "malloc of 1 MiB fails");
  free(buffer);
  NOTE("%ld kB locked, %ld kB resident, %ld kB mapped", kilobytes("VmLck"), kilobytes("VmRSS"), kilobytes("VmSize"));
  return finish();
}
