#include "closing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

enum { between_looks_ns = 1000000 };
enum { most_workers = 64 };

static _Atomic int is_finalizing;
static _Atomic int is_closing; /* the thread is there */

/* Recursive: UCX calls the library back, which then gives requests back. */
static pthread_mutex_t turn = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t stopped;
static pthread_t looking;
/* Under turn. */
static int stops;
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

void farsum_mpi_finalizes(void) { atomic_store(&is_finalizing, 1); }

void farsum_mpi_closes(void) {
  if (!atomic_load(&is_finalizing) || atomic_load(&is_closing)) return;
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&stopped, &clock);
  pthread_condattr_destroy(&clock);
  stops = 0;
  worker_count = 0;
  /* Without it all is as the library has it. */
  atomic_store(&is_closing, pthread_create(&looking, NULL, look_after_workers, NULL) == 0);
}

void farsum_mpi_closes_worker(farsum_mpi_progress_function* progress, void* worker) {
  if (worker_count == most_workers) return;
  for (size_t i = 0; i < worker_count; ++i) {
    if (workers[i].worker == worker) return;
  }
  workers[worker_count].progress = progress;
  workers[worker_count].worker = worker;
  ++worker_count;
}

void farsum_mpi_has_closed(void) {
  if (!atomic_load(&is_closing)) return;
  pthread_mutex_lock(&turn);
  stops = 1;
  pthread_cond_signal(&stopped);
  pthread_mutex_unlock(&turn);
  pthread_join(looking, NULL);
  pthread_cond_destroy(&stopped);
  atomic_store(&is_closing, 0);
}

int farsum_mpi_turn_begins(void) {
  const int begins = atomic_load_explicit(&is_closing, memory_order_acquire);
  if (begins) pthread_mutex_lock(&turn);
  return begins;
}

void farsum_mpi_turn_ends(int has_begun) {
  if (has_begun) pthread_mutex_unlock(&turn);
}
