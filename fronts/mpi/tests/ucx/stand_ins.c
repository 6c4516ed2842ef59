/* What a UCX and an MPI library linked to it look like from outside. The one answers what it is told to and sees who
 * calls it; the other asks it, and ends as MPICH 4.0 does. */
#define EXPORTED __attribute__((visibility("default")))

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void sleep_us(long microseconds) {
  const struct timespec pause = {0, microseconds * 1000};
  nanosleep(&pause, NULL);
}

#ifdef IS_UCX
static unsigned heard;
static _Atomic unsigned asked, other_asked;

EXPORTED void ucx_will_hear(unsigned events);
EXPORTED void ucx_will_hear(unsigned events) { heard = events; }
EXPORTED unsigned ucx_was_asked(void);
EXPORTED unsigned ucx_was_asked(void) { return asked; }
EXPORTED unsigned ucx_other_was_asked(void);
EXPORTED unsigned ucx_other_was_asked(void) { return other_asked; }

/* Of another user of UCX in the process, beside the library's. */
EXPORTED char ucx_other_worker;

/* Who comes while another thread is inside, or after the worker is gone, does what UCX forbids. */
static _Atomic int inside, faults, is_destroyed;
static _Thread_local int depth;

static void enter(void) {
  if (depth++ == 0 && atomic_fetch_add(&inside, 1) != 0) ++faults;
  if (is_destroyed) ++faults;
}
static void leave(void) {
  if (--depth == 0) atomic_fetch_sub(&inside, 1);
}

EXPORTED int ucx_faults(void);
EXPORTED int ucx_faults(void) { return faults; }

EXPORTED void ucp_request_free(void* request);
EXPORTED void ucp_request_free(void* request) {
  enter();
  (void)request;
  sleep_us(50);
  leave();
}

EXPORTED void ucp_request_release(void* request);
EXPORTED void ucp_request_release(void* request) {
  enter();
  (void)request;
  sleep_us(200);
  leave();
}

/* What UCX calls the library back with. */
EXPORTED void (*ucx_calls_back)(void);

EXPORTED unsigned ucp_worker_progress(void* worker);
EXPORTED unsigned ucp_worker_progress(void* worker) {
  if (worker == &ucx_other_worker) {
    ++other_asked;
    return 0;
  }
  enter();
  ++asked;
  if (ucx_calls_back != 0) {
    ucx_calls_back();
    sleep_us(200);
  }
  leave();
  return heard;
}

EXPORTED void* ucp_disconnect_nb(void* endpoint);
EXPORTED void* ucp_disconnect_nb(void* endpoint) {
  enter();
  sleep_us(200);
  leave();
  return endpoint;
}

EXPORTED void ucp_worker_destroy(void* worker);
EXPORTED void ucp_worker_destroy(void* worker) {
  if (worker == &ucx_other_worker) return;
  enter();
  is_destroyed = 1;
  leave();
}
#else
unsigned ucp_worker_progress(void* worker);
void* ucp_disconnect_nb(void* endpoint);
void ucp_request_release(void* request);
void ucp_request_free(void* request);
void ucp_worker_destroy(void* worker);
unsigned ucx_was_asked(void);
unsigned ucx_other_was_asked(void);
extern void (*ucx_calls_back)(void);
extern char ucx_other_worker;

EXPORTED unsigned mpi_asks(void);
EXPORTED unsigned mpi_asks(void) {
  volatile unsigned heard = ucp_worker_progress((void*)0);
  return heard;
}

/* Compiled as a jump: from outside it is the program that asks. */
EXPORTED unsigned mpi_asks_last(void);
EXPORTED unsigned mpi_asks_last(void) { return ucp_worker_progress((void*)0); }

static char place; /* stands for endpoints, requests and workers */
static void is_called_back(void) { ucp_request_free(&place); }

/* Another user of UCX, in a thread of its own, comes and goes while the library closes its connections. */
static void* use_other_worker(void* nothing) {
  (void)nothing;
  (void)ucp_worker_progress(&ucx_other_worker);
  ucp_worker_destroy(&ucx_other_worker);
  return (void*)0;
}

static int is_answered(void) {
  const char* off = getenv("FARSUM_MPI_OFF");
  return off == (void*)0 || strcmp(off, "1") != 0;
}

/* How often others asked while this rank was in the launcher's barrier, which it leaves after that; where nobody will,
 * after 200 ms. */
static unsigned asked_in_barrier;
EXPORTED unsigned mpi_asked_in_barrier(void);
EXPORTED unsigned mpi_asked_in_barrier(void) { return asked_in_barrier; }

EXPORTED int PMPI_Barrier(int comm);
EXPORTED int PMPI_Barrier(int comm) { return comm; }

EXPORTED int PMPI_Finalize(void);
EXPORTED int PMPI_Finalize(void) {
  pthread_t other;
  ucx_calls_back = is_called_back;
  (void)ucp_disconnect_nb(&place);
  for (int i = 0; i < 20; ++i) (void)ucp_worker_progress(&place);
  if (pthread_create(&other, (void*)0, use_other_worker, (void*)0) != 0 || pthread_join(other, (void*)0) != 0) return 1;
  for (int i = 0; i < 20; ++i) {
    (void)ucp_disconnect_nb(&place);
    ucp_request_release(&place);
    ucp_request_free(&place);
  }
  const unsigned before = ucx_was_asked();
  for (int i = 0; (is_answered() || i < 2000) && ucx_was_asked() < before + 5; ++i) sleep_us(100);
  asked_in_barrier = ucx_was_asked() - before;
  const char* fails = getenv("END_FAILS");
  if (fails == (void*)0) ucp_worker_destroy(&place);
  return ucx_other_was_asked() == 1 ? 0 : 1;
}
EXPORTED int MPI_Finalize(void);
EXPORTED int MPI_Finalize(void) { return PMPI_Finalize(); }
#endif
