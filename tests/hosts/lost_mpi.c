/* MPI calls of rank 0 whose target is lost (tests/hosts/faults): each is to end with an error that says so.
 *
 *   lost_mpi CALL FILE        flush, unlock or fence. Rank 0 says "rank 0: ready", waits for the file, and says how the
 * call ended, for the script to judge. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t one = 1;
static uint64_t* mine;
static MPI_Win window;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void ended(const char* call, double begin_ms, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  printf("ended %s after %.0f ms: %s\n", call, now_ms() - begin_ms, code == MPI_SUCCESS ? "MPI_SUCCESS" : text);
  fflush(stdout);
}

static int put(void) { return MPI_Put(&one, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, window); }

/* The first waits until the loss is known, the others are told at once. */
static void flush_and_others(void) {
  double begin = now_ms();
  MPI_Request request = MPI_REQUEST_NULL;
  uint64_t old = 0;
  int code = put();
  ended("MPI_Win_flush", begin, code == MPI_SUCCESS ? MPI_Win_flush(1, window) : code);
  begin = now_ms();
  code = MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 1, 0, MPI_SUM, window);
  ended("MPI_Fetch_and_op", begin, code == MPI_SUCCESS ? MPI_Win_flush(1, window) : code);
  begin = now_ms();
  code = MPI_Rput(&one, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, window, &request);
  ended("MPI_Wait", begin, code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code);
}

static void unlock(void) {
  const double begin = now_ms();
  const int code = put();
  ended("MPI_Win_unlock", begin, code == MPI_SUCCESS ? MPI_Win_unlock(1, window) : code);
}

static void fence(void) {
  const double begin = now_ms();
  const int code = put();
  ended("MPI_Win_fence", begin, code == MPI_SUCCESS ? MPI_Win_fence(0, window) : code);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const int fences = strcmp(argv[1], "fence") == 0, locks = strcmp(argv[1], "unlock") == 0;
  if (!fences && !locks && strcmp(argv[1], "flush") != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  if (fences) MPI_Win_fence(0, window);
  if (!fences && !locks) MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0)
    while (1) pause();
  if (locks) {
    /* Held: what is told is the loss, not that the lock is not had. */
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    MPI_Win_flush(1, window);
  }
  puts("rank 0: ready");
  fflush(stdout);
  while (access(argv[2], F_OK) != 0) usleep(1000);
  if (fences)
    fence();
  else if (locks)
    unlock();
  else
    flush_and_others();
  /* The job is over: nothing can be wound up. */
  _exit(0);
}
