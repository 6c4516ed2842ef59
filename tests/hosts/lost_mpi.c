/* MPI calls of rank 0 whose target is lost (tests/hosts/faults): each is to end with an error that says so.
 *
 *   lost_mpi CALL FILE        one of `runs`. Rank 0 says "rank 0: ready", waits for the file, and says how the calls of
 * that run ended, for the script to judge. */
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

/* `call` comes behind a put. */
static void put_and(const char* name, int (*call)(void)) {
  const double begin = now_ms();
  const int code = put();
  ended(name, begin, code == MPI_SUCCESS ? call() : code);
}

static int flush_call(void) { return MPI_Win_flush(1, window); }
static int unlock_call(void) { return MPI_Win_unlock(1, window); }
static int unlock_all_call(void) { return MPI_Win_unlock_all(window); }
static int fence_call(void) { return MPI_Win_fence(0, window); }
static int complete_call(void) { return MPI_Win_complete(window); }

static MPI_Group the_other(void) {
  int rank;
  MPI_Group all, other;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int the_others_rank = 1 - rank;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &the_others_rank, &other);
  return other;
}

/* What the ranks do before rank 0 is ready, and what rank 0 does when the other is lost. */
static int begin_lock_all(int rank) {
  (void)rank;
  return MPI_Win_lock_all(0, window);
}
static void unlock_all(void) { put_and("MPI_Win_unlock_all", unlock_all_call); }

static int begin_lock(int rank) {
  if (rank != 0) return MPI_SUCCESS;
  /* Held: what is told is the loss, not that the lock is not had. */
  const int code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
  return code == MPI_SUCCESS ? flush_call() : code;
}
static void unlock(void) { put_and("MPI_Win_unlock", unlock_call); }

static int begin_fence(int rank) {
  (void)rank;
  return fence_call();
}
static void fence(void) { put_and("MPI_Win_fence", fence_call); }

static int begin_start(int rank) {
  return rank == 0 ? MPI_Win_start(the_other(), 0, window) : MPI_Win_post(the_other(), 0, window);
}
static void complete(void) { put_and("MPI_Win_complete", complete_call); }

static int begin_post(int rank) { return rank == 0 ? MPI_Win_post(the_other(), 0, window) : MPI_SUCCESS; }
static void wait_exposure(void) {
  const double begin = now_ms();
  ended("MPI_Win_wait", begin, MPI_Win_wait(window));
}

static int begin_nothing(int rank) {
  (void)rank;
  return MPI_SUCCESS;
}
static void lock_all(void) {
  const double begin = now_ms();
  ended("MPI_Win_lock_all", begin, MPI_Win_lock_all(0, window));
}
/* Without a post. */
static void start(void) {
  const double begin = now_ms();
  const int code = MPI_Win_start(the_other(), 0, window);
  ended("MPI_Win_start", begin, code == MPI_SUCCESS ? complete_call() : code);
}
static void free_window(void) {
  const double begin = now_ms();
  ended("MPI_Win_free", begin, MPI_Win_free(&window));
}

static const struct Run {
  const char* name;
  int (*begin)(int rank);
  void (*go)(void);
} runs[] = {{"flush", begin_lock_all, flush_and_others},
            {"unlock_all", begin_lock_all, unlock_all},
            {"unlock", begin_lock, unlock},
            {"fence", begin_fence, fence},
            {"complete", begin_start, complete},
            {"wait", begin_post, wait_exposure},
            {"lock_all", begin_nothing, lock_all},
            {"start", begin_nothing, start},
            {"free", begin_nothing, free_window}};

static const struct Run* run_of(const char* name) {
  for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i)
    if (strcmp(runs[i].name, name) == 0) return &runs[i];
  return NULL;
}

/* On a busy machine the other may be lost in these already; the script reads why. */
static void demand(int code, const char* what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  printf("FAILED: %s: %s\n", what, text);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const struct Run* const run = argc == 3 ? run_of(argv[1]) : NULL;
  if (run == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  demand(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window),
         "MPI_Win_allocate");
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  demand(run->begin(rank), argv[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0)
    while (1) pause();
  puts("rank 0: ready");
  fflush(stdout);
  while (access(argv[2], F_OK) != 0) usleep(1000);
  run->go();
  /* The job is over: nothing can be wound up. */
  _exit(0);
}
