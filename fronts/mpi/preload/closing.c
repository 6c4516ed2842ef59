#include "closing.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

enum { between_looks_ns = 1000000 };
enum { most_workers = 64 };

/* Recursive: UCX calls the library back, which then gives requests back. */
static pthread_mutex_t turn = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* The thread is there. Written under turn; released there, acquired in turn_begins, for what it waits on. */
static _Atomic int is_looking;
/* Under turn. */
static int is_ending;
static int stops;
static pthread_cond_t stopped;
static pthread_t looking;
static pthread_t closing; /* the library's thread */
static struct {
  farsum_mpi_progress_function* progress;
  void* worker;
} workers[most_workers];
static size_t worker_count;

static struct timespec next_look(void) {
  struct timespec when;
  clock_gettime(CLOCK_MONOTONIC, &when);
  when.tv_nsec += between_looks_ns;
  if (when.tv_nsec >= 1000000000) {
    when.tv_nsec -= 1000000000;
    ++when.tv_sec;
  }
  return when;
}

static void* look_after_workers(void* nothing) {
  (void)nothing;
  pthread_mutex_lock(&turn);
  while (!stops) {
    const struct timespec when = next_look();
    (void)pthread_cond_timedwait(&stopped, &turn, &when);
    for (size_t i = 0; !stops && i < worker_count; ++i) (void)workers[i].progress(workers[i].worker);
  }
  pthread_mutex_unlock(&turn);
  return NULL;
}

/* Under turn. Without the thread all is as the library has it. The program's signals are not for it. */
static void begin_to_look(void) {
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&stopped, &clock);
  pthread_condattr_destroy(&clock);
  stops = 0;
  worker_count = 0;
  closing = pthread_self();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int is_there = pthread_create(&looking, NULL, look_after_workers, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  atomic_store_explicit(&is_looking, is_there, memory_order_release);
}

static int is_known(const void* worker) {
  for (size_t i = 0; i < worker_count; ++i) {
    if (workers[i].worker == worker) return 1;
  }
  return 0;
}

/* By the library's thread, where it is not in a turn. */
static void stop_looking(void) {
  pthread_mutex_lock(&turn);
  stops = 1;
  pthread_cond_signal(&stopped);
  pthread_mutex_unlock(&turn);
  pthread_join(looking, NULL);
  pthread_mutex_lock(&turn);
  pthread_cond_destroy(&stopped);
  atomic_store_explicit(&is_looking, 0, memory_order_release);
  pthread_mutex_unlock(&turn);
}

static int looks(void) { return atomic_load_explicit(&is_looking, memory_order_acquire); }

void farsum_mpi_begins_to_end(void) {
  pthread_mutex_lock(&turn);
  is_ending = 1;
  pthread_mutex_unlock(&turn);
}

void farsum_mpi_has_ended(void) {
  pthread_mutex_lock(&turn);
  is_ending = 0;
  pthread_mutex_unlock(&turn);
  /* Its end failed before it destroyed its worker. */
  if (looks()) stop_looking();
}

void farsum_mpi_closes(void) {
  pthread_mutex_lock(&turn);
  if (is_ending && !looks()) begin_to_look();
  pthread_mutex_unlock(&turn);
}

void farsum_mpi_closes_worker(farsum_mpi_progress_function* progress, void* worker) {
  if (!pthread_equal(closing, pthread_self()) || worker_count == most_workers || is_known(worker)) return;
  workers[worker_count].progress = progress;
  workers[worker_count].worker = worker;
  ++worker_count;
}

void farsum_mpi_destroys_worker(const void* worker) {
  if (!looks()) return;
  pthread_mutex_lock(&turn);
  const int is_of_them = is_known(worker);
  pthread_mutex_unlock(&turn);
  if (is_of_them) stop_looking();
}

int farsum_mpi_turn_begins(void) {
  const int begins = looks();
  if (begins) pthread_mutex_lock(&turn);
  return begins;
}

void farsum_mpi_turn_ends(int has_begun) {
  if (has_begun) pthread_mutex_unlock(&turn);
}
