/* Under MPI_THREAD_MULTIPLE a free waits until all ranks have come, also where two ranks free two windows in different
 * orders and the threads that will bring them together have never made or freed a window. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "check.h"

/* Many times what ranks need to see the circle in which they wait; one takes a millisecond at most. */
enum { enough_sleeps = 400 };

static MPI_Win windows[2];
static MPI_Comm others_comm;
static int rank;
static _Thread_local int in_first_free;
static atomic_int has_freed, sleeps; /* read and written relaxed: facts alone */

/* Takes the place of libc's, through which the engine sleeps. */
__attribute__((visibility("default"))) long syscall(long number, ...) {
  static long (*_Atomic next)(long, ...);
  long (*function)(long, ...) = atomic_load_explicit(&next, memory_order_relaxed);
  long words[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) words[i] = va_arg(list, long);
  va_end(list);
  if (function == NULL) {
    void* found = dlsym(RTLD_NEXT, "syscall");
    memcpy(&function, &found, sizeof function);
    atomic_store_explicit(&next, function, memory_order_relaxed); /* the same for every thread */
  }
  if (number == SYS_futex && in_first_free) atomic_fetch_add_explicit(&sleeps, 1, memory_order_relaxed);
  return function(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* Each rank's first thread frees one window, its second thread the other one later. */
static void free_first(void) {
  in_first_free = 1;
  CALL(MPI_Win_free(&windows[rank]));
  in_first_free = 0;
  atomic_store_explicit(&has_freed, 1, memory_order_relaxed);
}

/* Neither rank comes to the other's free before both have slept in their own for long. */
static void* free_second(void* nothing) {
  while (atomic_load_explicit(&sleeps, memory_order_relaxed) < enough_sleeps &&
         !atomic_load_explicit(&has_freed, memory_order_relaxed)) {
    sched_yield();
  }
  MPI_Barrier(others_comm);
  CHECK(!atomic_load_explicit(&has_freed, memory_order_relaxed), "rank %d's free returned before the other came", rank);
  MPI_Barrier(others_comm);
  CALL(MPI_Win_free(&windows[1 - rank]));
  return nothing;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  rank = my_rank(MPI_COMM_WORLD);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("this library provides no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  void* memory = NULL;
  MPI_Comm comms[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    CALL(MPI_Win_allocate(4096, 1, MPI_INFO_NULL, comms[i], &memory, &windows[i]));
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &others_comm);
  pthread_t other;
  pthread_create(&other, NULL, free_second, NULL);
  free_first();
  pthread_join(other, NULL);
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
  MPI_Comm_free(&others_comm);
  return finish();
}
