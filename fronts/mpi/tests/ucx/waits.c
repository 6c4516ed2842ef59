/* Who polls through UCX and hears nothing lets others run, and sleeps where these compute; who hears something, or
 * works in between, does not; and each library is answered by the UCX that it was linked to. Two of both are loaded
 * privately, with the preload in front.
 *
 *   waits LIBRARY_ONE UCX_ONE LIBRARY_TWO UCX_TWO YIELDS
 */
#include <time.h>

#include "loaded.h"

static void sleep_us(long microseconds) {
  const struct timespec pause = {0, microseconds * 1000};
  nanosleep(&pause, NULL);
}

/* Takes the place of libc's. */
static long yields;
static long next_yield_us; /* for so long others take the processor */
__attribute__((visibility("default"))) int sched_yield(void) {
  ++yields;
  if (next_yield_us != 0) sleep_us(next_yield_us);
  next_yield_us = 0;
  return 0;
}

struct pair {
  unsigned (*asks)(void);
  unsigned (*asks_last)(void);
  void (*will_hear)(unsigned events);
  unsigned (*was_asked)(void);
};

static struct pair load_pair(const char* mpi, const char* ucx) {
  struct pair loaded;
  void* library = load(mpi);
  store(&loaded.asks, library, "mpi_asks");
  store(&loaded.asks_last, library, "mpi_asks_last");
  void* linked = load(ucx);
  store(&loaded.will_hear, linked, "ucx_will_hear");
  store(&loaded.was_asked, linked, "ucx_was_asked");
  return loaded;
}

static long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* How often others were let run meanwhile. */
static long yields_while_polling(const struct pair* pair, long microseconds) {
  const long before = yields;
  for (const long end = now_us() + microseconds; now_us() < end;) (void)pair->asks();
  return yields - before;
}

static long yields_of_visits(const struct pair* pair, int visits) {
  const long before = yields;
  for (int i = 0; i < visits; ++i) {
    sleep_us(200);
    (void)pair->asks();
  }
  return yields - before;
}

/* Whether it let others run, once, before the time was over. */
static int yields_within(const struct pair* pair, long microseconds) {
  const long before = yields;
  for (const long end = now_us() + microseconds; yields == before && now_us() < end;) (void)pair->asks();
  return yields != before;
}

static long yields_of_asks(const struct pair* pair, int asks) {
  const long before = yields;
  for (int i = 0; i < asks; ++i) (void)pair->asks();
  return yields - before;
}

int main(int count, char** words) {
  if (count != 6) return 2;
  const int expects_yields = strcmp(words[5], "1") == 0;
  const long limit_us = expects_yields ? 2000000 : 50000;
  const struct pair one = load_pair(words[1], words[2]);
  const struct pair two = load_pair(words[3], words[4]);
  int (*barrier)(int);
  store(&barrier, RTLD_DEFAULT, "MPI_Barrier"); /* the preload's, which looks for its library now */
  CHECK(barrier(0) == 0);

  one.will_hear(3);
  two.will_hear(5);
  CHECK(one.asks() == 3 && two.asks() == 5);
  CHECK(one.asks() == 3 && two.asks() == 5);
  CHECK(one.was_asked() == 2 && two.was_asked() == 2);
  CHECK(one.asks_last() != 0);
  CHECK(one.was_asked() + two.was_asked() == 5);

  CHECK(yields_while_polling(&one, 5000) == 0);
  one.will_hear(0);
  CHECK(yields_of_visits(&one, 50) == 0);
  CHECK((yields_while_polling(&one, 50000) > 0) == expects_yields);
  /* Who lost its processor for long does not ask for that again soon, but later. */
  next_yield_us = 20000;
  CHECK(yields_within(&one, limit_us) == expects_yields);
  CHECK(yields_of_asks(&one, 60) == 0);
  CHECK(yields_within(&one, limit_us) == expects_yields);
  /* What was heard begins the wait anew: not even the first look after it gives way. */
  one.will_hear(1);
  (void)one.asks();
  one.will_hear(0);
  CHECK(yields_of_asks(&one, 1) == 0);
  return failures == 0 ? 0 : 1;
}
