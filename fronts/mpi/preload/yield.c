#include "yield.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

#include "setting.h"

/* Ticks of the time stamp counter, 1 to 5 in a nanosecond: a round trip over a network is not waited for so. */
enum { patience = 30000 };
/* Who stays away for longer works in between. */
enum { longest_gap = 30000 };

/* Others who take the processor for longer compute. Who sleeps is woken before they have had their share, and who
 * yields again and again is not. */
enum { long_yield = 3000000 };
enum { sleep_ns = 20000 };
enum { sleeps = 64 }; /* then it yields again, to see whether they are still there */

struct wait {
  uint64_t since;  /* when this thread began to hear nothing; 0: it heard something */
  uint64_t last;   /* when it asked last */
  int sleeps_left; /* others have taken the processor for long */
};

static _Thread_local struct wait wait_of_thread;
static _Atomic int yields; /* relaxed: nothing is ordered by it */

/* When it was over. */
static uint64_t give_way(struct wait* wait, uint64_t now) {
  if (wait->sleeps_left != 0) {
    --wait->sleeps_left;
    const struct timespec pause = {0, sleep_ns};
    nanosleep(&pause, NULL);
    return __rdtsc();
  }
  sched_yield();
  const uint64_t back = __rdtsc();
  if (back - now > long_yield) wait->sleeps_left = sleeps;
  return back;
}

static void heard_nothing(struct wait* wait) {
  uint64_t now = __rdtsc();
  if (wait->since == 0 || now - wait->last > longest_gap) {
    wait->since = now;
  } else if (now - wait->since > patience) {
    now = give_way(wait, now);
    /* Nobody has wanted the processor for long. */
    if (wait->sleeps_left == 0) wait->since = now;
  }
  wait->last = now;
}

void farsum_mpi_has_heard(unsigned events) {
  if (events != 0) {
    wait_of_thread.since = 0;
  } else if (atomic_load_explicit(&yields, memory_order_relaxed)) {
    heard_nothing(&wait_of_thread);
  }
}

void farsum_mpi_lets_yield(void) {
  const int wanted = !farsum_mpi_setting_is_on("FARSUM_MPI_OFF") && !farsum_mpi_setting_is_off("FARSUM_MPI_YIELD");
  atomic_store_explicit(&yields, wanted, memory_order_relaxed);
}
