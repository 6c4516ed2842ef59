/* One-sided operations between two ranks on two hosts, in plain MPI: rank 0 calls, the last rank is the target. It
 * knows nothing of Farsum. Every case checks its answer before its time is taken, and the sums once more at the end.
 *
 *   net_rma [--slice-us N] [--compute-us N] [--no-sleep] [--cases A,B,...]
 *   net_rma --figures ...     the cases of the papers' figures, by size and by number, in one state of the target
 *
 * The target waits in MPI_Barrier ("waits"), sleeps in the kernel outside MPI ("sleeps"), or computes without a call of
 * MPI ("computes"). One JSON object a line: the median and quartiles of the time of one operation, in nanoseconds. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  most_bytes = 1 << 20,
  most_in_flight = 8,
  bulk_bytes = most_bytes * most_in_flight,
  table_words = 1 << 21,
  most_samples = 1 << 16,
  least_samples = 5,
  most_updates = 1024,
  gathered_updates = 4096,
  most_gathers = 16,
  settle_us = 2000,
};

typedef enum { waits, sleeps, computes } State;
static const char* const state_names[] = {"waits", "sleeps", "computes"};

/* `call` starts one operation; the loop ends each batch with a flush, where `flushes`. */
typedef struct {
  const char* name;
  void (*call)(size_t bytes, int index);
  void (*check)(size_t bytes, int batch);
  size_t bytes;
  int batch;
  int flushes;
  int while_computing;
} Case;

typedef struct {
  uint64_t words[bulk_bytes / sizeof(uint64_t)];
  uint64_t table[table_words];
  uint64_t counter;
  uint64_t padding[7];
  double sum;
  double sums[1000];
} Part;

static int rank, target;
static MPI_Win window, locked_window; /* the first is locked from the start to the end */
static Part* part;
static uint64_t* locked_words;
static uint64_t* buffer;
static double one = 1;
static uint64_t drawn, sums_done, added;
static uint64_t random_state = 1;
static double* samples;
static long slice_us = 20000, compute_us = 40000;
static int may_sleep = 1, figures = 0;
static const char* wanted = "";

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void wrong(const char* what, double got, double expected) {
  printf("FAILED: wrong answer: %s is %.17g, not %.17g\n", what, got, expected);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void equal(const char* what, double got, double expected) {
  if (got != expected) wrong(what, got, expected);
}

static MPI_Aint at(size_t offset) { return (MPI_Aint)offset; }
static int is_target(void) { return rank == target; }
static int is_caller(void) { return rank == 0; }

static void spin_us(long us) {
  const double end = now_ns() + (double)us * 1e3;
  while (now_ns() < end) {
  }
}

/* Arithmetic only, so that nothing but the scheduler takes the core from it. */
static void compute_for_us(long us) {
  const double end = now_ns() + (double)us * 1e3;
  volatile double value = 1;
  while (now_ns() < end) {
    for (int i = 0; i < 1000; ++i) value = value * 1.0000001 + 1e-9;
  }
}

/* What the target has in its part is what callers see, and the other way round; all ranks call. */
static void agree(void) {
  MPI_Win_sync(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(window);
}

static void put(size_t bytes, int index) {
  MPI_Put((char*)buffer + (size_t)index * bytes, (int)bytes, MPI_BYTE, target, at((size_t)index * bytes), (int)bytes,
          MPI_BYTE, window);
}

static void get(size_t bytes, int index) {
  MPI_Get((char*)buffer + (size_t)index * bytes, (int)bytes, MPI_BYTE, target, at((size_t)index * bytes), (int)bytes,
          MPI_BYTE, window);
}

static void accumulate(size_t bytes, int index) {
  const int count = (int)(bytes / sizeof(double));
  MPI_Accumulate((char*)buffer + (size_t)index * bytes, count, MPI_DOUBLE, target, at((size_t)index * bytes), count,
                 MPI_DOUBLE, MPI_SUM, window);
}

static void accumulate_one(size_t bytes, int index) {
  (void)bytes, (void)index;
  MPI_Accumulate(&one, 1, MPI_DOUBLE, target, at(offsetof(Part, sum)), 1, MPI_DOUBLE, MPI_SUM, window);
  ++sums_done;
}

static void accumulate_implicitly(size_t bytes, int index) {
  MPI_Accumulate(&one, 1, MPI_DOUBLE, target, at(offsetof(Part, sums) + (size_t)index * bytes), 1, MPI_DOUBLE, MPI_SUM,
                 window);
}

static void draw(size_t bytes, int index) {
  static uint64_t unit = 1;
  static uint64_t number;
  (void)bytes, (void)index;
  MPI_Fetch_and_op(&unit, &number, MPI_UINT64_T, target, at(offsetof(Part, counter)), MPI_SUM, window);
  MPI_Win_flush(target, window);
  equal("a number drawn", (double)number, (double)drawn);
  ++drawn;
}

static uint64_t next_random(uint64_t state) { return state * 6364136223846793005U + 1442695040888963407U; }

/* A word of the table, in one of so many slices of it. */
static size_t place_of(uint64_t state, int slice, int slices) {
  const size_t words = (size_t)table_words / (size_t)slices;
  return (size_t)slice * words + (size_t)(state >> 33U) % words;
}

static void update_random(size_t bytes, int index) {
  static uint64_t values[most_updates];
  (void)bytes;
  random_state = next_random(random_state);
  values[index] = random_state;
  const size_t place = place_of(random_state, 0, 1);
  MPI_Accumulate(&values[index], 1, MPI_UINT64_T, target, at(offsetof(Part, table) + place * sizeof(uint64_t)), 1,
                 MPI_UINT64_T, MPI_BXOR, window);
}

/* As many updates as 8 bytes are in `bytes`, in one call: a target's datatype must not name a place twice, so that each
 * update keeps to a slice of the table. */
static void update_gathered(size_t bytes, int index) {
  static uint64_t values[most_gathers][gathered_updates];
  static int places[gathered_updates];
  const int count = (int)(bytes / sizeof(uint64_t));
  MPI_Datatype type;
  for (int i = 0; i < count; ++i) {
    values[index][i] = random_state = next_random(random_state);
    places[i] = (int)place_of(random_state, i, count);
  }
  MPI_Type_create_indexed_block(count, 1, places, MPI_UINT64_T, &type);
  MPI_Type_commit(&type);
  MPI_Accumulate(values[index], count, MPI_UINT64_T, target, at(offsetof(Part, table)), 1, type, MPI_BXOR, window);
  MPI_Type_free(&type);
}

/* Paper 4's ways to change a word, each with its epochs. */
static void get_modify_put(size_t bytes, int index) {
  static uint64_t word;
  (void)bytes, (void)index;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, locked_window);
  MPI_Get(&word, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, locked_window);
  MPI_Win_unlock(target, locked_window);
  ++word;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, locked_window);
  MPI_Put(&word, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, locked_window);
  MPI_Win_unlock(target, locked_window);
  ++added;
}

static void lock_accumulate_unlock(size_t bytes, int index) {
  static uint64_t unit = 1;
  (void)bytes, (void)index;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, locked_window);
  MPI_Accumulate(&unit, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, MPI_SUM, locked_window);
  MPI_Win_unlock(target, locked_window);
  ++added;
}

static void lock_put_unlock(size_t bytes, int index) {
  (void)index;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, locked_window);
  MPI_Put(buffer, (int)bytes, MPI_BYTE, target, 0, (int)bytes, MPI_BYTE, locked_window);
  MPI_Win_unlock(target, locked_window);
}

static void call_batch(const Case* one_case) {
  for (int index = 0; index < one_case->batch; ++index) one_case->call(one_case->bytes, index);
  if (one_case->flushes) MPI_Win_flush(target, window);
}

static const Case* checked; /* the case that a check is of */

static void fill(uint64_t* words, size_t bytes, uint64_t mark) {
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) words[i] = mark + i;
}

static void expect(const uint64_t* words, size_t bytes, uint64_t mark, const char* what) {
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) equal(what, (double)words[i], (double)(mark + i));
}

static void check_put(size_t bytes, int batch) {
  const size_t all = bytes * (size_t)batch;
  if (is_caller()) fill(buffer, all, all);
  if (is_target()) memset(part->words, 0, all);
  agree();
  if (is_caller()) call_batch(checked);
  agree();
  if (is_target()) expect(part->words, all, all, "a word put");
}

static void check_get(size_t bytes, int batch) {
  const size_t all = bytes * (size_t)batch;
  if (is_caller()) memset(buffer, 0, all);
  if (is_target()) fill(part->words, all, 3 * all);
  agree();
  if (is_caller()) call_batch(checked);
  agree();
  if (is_caller()) expect(buffer, all, 3 * all, "a word got");
}

static void check_accumulate(size_t bytes, int batch) {
  const size_t count = bytes * (size_t)batch / sizeof(double);
  double* const mine = is_caller() ? (double*)buffer : (double*)part->words;
  for (size_t i = 0; i < count; ++i) mine[i] = is_caller() ? (double)i + 1 : 0.5;
  agree();
  if (is_caller()) call_batch(checked), call_batch(checked);
  agree();
  if (is_target()) {
    for (size_t i = 0; i < count; ++i) equal("a sum", mine[i], 2 * ((double)i + 1) + 0.5);
  } else {
    for (size_t i = 0; i < count; ++i) mine[i] = 1; /* many times, without leaving the doubles */
  }
}

/* Every operation on these two words is counted; what they hold is compared with that, now and at the end. */
static void check_words(size_t bytes, int batch) {
  uint64_t counts[2];
  (void)bytes, (void)batch;
  if (is_caller()) call_batch(checked), call_batch(checked);
  agree();
  counts[0] = drawn, counts[1] = sums_done;
  MPI_Bcast(counts, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (is_target()) equal("the counter", (double)part->counter, (double)counts[0]);
  if (is_target()) equal("the sum of ones", part->sum, (double)counts[1]);
  agree();
}

static void check_implicit(size_t bytes, int batch) {
  (void)bytes;
  if (is_target()) memset(part->sums, 0, sizeof part->sums);
  agree();
  if (is_caller()) call_batch(checked), call_batch(checked);
  agree();
  for (int i = 0; is_target() && i < batch; ++i) equal("one of a thousand sums", part->sums[i], 2);
}

static void check_random(size_t bytes, int batch) {
  uint64_t* const expected = calloc(table_words, sizeof *expected);
  uint64_t state = random_state = 1; /* where the caller's has gone to, the target does not know */
  const int is_gathered = checked->call == update_gathered;
  const int of_a_call = is_gathered ? (int)(bytes / sizeof(uint64_t)) : 1;
  if (expected == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < batch * of_a_call; ++i) {
    state = next_random(state);
    expected[place_of(state, i % of_a_call, of_a_call)] ^= state;
  }
  if (is_target()) memset(part->table, 0, sizeof part->table);
  agree();
  if (is_caller()) call_batch(checked);
  agree();
  for (size_t i = 0; is_target() && i < table_words; ++i)
    equal("a word of the table", (double)part->table[i], (double)expected[i]);
  free(expected);
}

static void check_locked(size_t bytes, int batch) {
  (void)batch;
  if (is_caller()) fill(buffer, bytes, 77);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_caller()) call_batch(checked);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_target()) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, locked_window);
    expect(locked_words, bytes, 77, "a word put under a lock");
    MPI_Win_unlock(target, locked_window);
  }
}

static void check_added(size_t bytes, int batch) {
  (void)bytes, (void)batch;
  added = 0;
  if (is_target()) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, locked_window);
    locked_words[0] = 0;
    MPI_Win_unlock(target, locked_window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_caller()) call_batch(checked), call_batch(checked);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_target()) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, locked_window);
    equal("a word changed by one rank", (double)locked_words[0], 2);
    MPI_Win_unlock(target, locked_window);
  }
}

static const Case cases[] = {
    {"put-8", put, check_put, 8, 1, 1, 1},
    {"get-8", get, check_get, 8, 1, 1, 0},
    {"fetch-and-op-8", draw, check_words, 8, 1, 0, 1},
    {"accumulate-8", accumulate_one, check_words, 8, 1, 1, 0},
    {"accumulate-8-x8", accumulate_one, check_words, 8, 8, 1, 0},
    {"lock-put-unlock-8", lock_put_unlock, check_locked, 8, 1, 0, 0},
    {"put-4KiB", put, check_put, 4096, 1, 1, 0},
    {"get-4KiB", get, check_get, 4096, 1, 1, 0},
    {"accumulate-4KiB", accumulate, check_accumulate, 4096, 1, 1, 0},
    {"put-64KiB", put, check_put, 65536, 1, 1, 0},
    {"get-64KiB", get, check_get, 65536, 1, 1, 0},
    {"accumulate-64KiB", accumulate, check_accumulate, 65536, 1, 1, 0},
    {"put-1MiB", put, check_put, most_bytes, 1, 1, 0},
    {"get-1MiB", get, check_get, most_bytes, 1, 1, 0},
    {"accumulate-1MiB", accumulate, check_accumulate, most_bytes, 1, 1, 0},
    {"put-1MiB-x8", put, check_put, most_bytes, most_in_flight, 1, 0},
    {"get-1MiB-x8", get, check_get, most_bytes, most_in_flight, 1, 0},
    {"accumulate-1MiB-x8", accumulate, check_accumulate, most_bytes, most_in_flight, 1, 0},
    {"implicit-1000", accumulate_implicitly, check_implicit, 8, 1000, 1, 0},
    {"random-xor-1024", update_random, check_random, 8, 1024, 1, 0},
    {"random-xor-gathered", update_gathered, check_random, gathered_updates * sizeof(uint64_t), most_gathers, 1, 0},
};

static int by_value(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static double quantile(size_t count, double share) { return samples[(size_t)(share * (double)(count - 1) + 0.5)]; }

static void tell(const Case* one_case, State state, size_t count) {
  qsort(samples, count, sizeof *samples, by_value);
  printf("{\"case\":\"%s\",\"owner\":\"%s\",\"ns\":%.1f,\"low\":%.1f,\"high\":%.1f,\"samples\":%zu}\n", one_case->name,
         state_names[state], quantile(count, 0.5), quantile(count, 0.25), quantile(count, 0.75), count);
  fflush(stdout);
}

/* At least so many samples, unless each takes long: while the target waits that is no error, for it is there to the
 * end. */
static size_t call_for_us(const Case* one_case, long us, size_t count, size_t least) {
  const double end = now_ns() + (double)us * 1e3, latest = end + (double)us * 3e3;
  const size_t enough = count + least;
  double start = now_ns();
  do {
    call_batch(one_case);
    const double done = now_ns();
    samples[count++] = (done - start) / one_case->batch;
    start = now_ns();
  } while ((start < end || (count < enough && start < latest)) && count < most_samples);
  return count;
}

/* How long the target is away, when it is. What is still under way then is ended by its barrier. */
static long away_us(State state) { return state == computes ? compute_us : slice_us + 2 * settle_us; }

static void measure(const Case* one_case, State state, int times) {
  size_t count = 0;
  if (is_caller() && state == waits) call_for_us(one_case, slice_us / 4, 0, 1); /* connections, caches, first uses */
  for (int i = 0; i < times; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_target() && state == computes) compute_for_us(away_us(state));
    if (is_target() && state == sleeps) {
      const struct timespec time = {away_us(state) / 1000000, away_us(state) % 1000000 * 1000};
      nanosleep(&time, NULL);
    }
    if (is_caller()) {
      if (state != waits) spin_us(settle_us); /* the target is away by then */
      count = call_for_us(one_case, state == computes ? compute_us / 2 : slice_us, count,
                          state == waits ? least_samples : 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (is_caller()) tell(one_case, state, count);
}

static int is_wanted(const char* name) {
  if (*wanted == '\0') return 1;
  const size_t length = strlen(name);
  for (const char* found = strstr(wanted, name); found != NULL; found = strstr(found + 1, name)) {
    if ((found == wanted || found[-1] == ',') && (found[length] == ',' || found[length] == '\0')) return 1;
  }
  return 0;
}

static void run(const Case* one_case) {
  if (!is_wanted(one_case->name)) return;
  checked = one_case;
  one_case->check(one_case->bytes, one_case->batch);
  MPI_Barrier(MPI_COMM_WORLD);
  if (figures) {
    /* The first calls are not among those that are told. */
    if (is_caller()) call_for_us(one_case, slice_us / 4, 0, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    measure(one_case, may_sleep ? sleeps : waits, 1);
    return;
  }
  measure(one_case, waits, 1);
  if (may_sleep) measure(one_case, sleeps, 1);
  if (one_case->while_computing) measure(one_case, computes, 3);
}

static void run_named(const char* kind, size_t number, Case one_case) {
  char name[32];
  snprintf(name, sizeof name, "%s-%zu", kind, number);
  one_case.name = name;
  run(&one_case);
}

static void run_figures(void) {
  static const size_t sizes[] = {8,     64,    256,   1024,   2048,   4096,   8192,
                                 16384, 32768, 65536, 131072, 262144, 524288, most_bytes};
  static const int counts[] = {1, 8, 64, 512, most_updates};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    run_named("sum", sizes[i], (Case){NULL, accumulate, check_accumulate, sizes[i], 1, 1, 0});
    if (sizes[i] > 4096) continue;
    run_named("put", sizes[i], (Case){NULL, put, check_put, sizes[i], 1, 1, 0});
    run_named("get", sizes[i], (Case){NULL, get, check_get, sizes[i], 1, 1, 0});
  }
  run_named("get-modify-put", 8, (Case){NULL, get_modify_put, check_added, 8, 1, 0, 0});
  run_named("lock-accumulate-unlock", 8, (Case){NULL, lock_accumulate_unlock, check_added, 8, 1, 0, 0});
  run_named("fetch-and-op", 8, (Case){NULL, draw, check_words, 8, 1, 0, 0});
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
    run_named("accumulates", (size_t)counts[i], (Case){NULL, update_random, check_random, 8, counts[i], 1, 0});
    run_named("gathered", (size_t)counts[i],
              (Case){NULL, update_gathered, check_random, (size_t)counts[i] * sizeof(uint64_t), 1, 1, 0});
  }
}

/* The caller and the target each on a processor of its own, where there are two; a library's threads go with them. */
static void pin(void) {
  const char* const names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
  cpu_set_t allowed;
  const char* number = NULL;
  for (size_t i = 0; number == NULL && i < sizeof names / sizeof *names; ++i) number = getenv(names[i]);
  if (number == NULL || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int left = atoi(number) % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- != 0) continue;
    CPU_ZERO(&allowed);
    CPU_SET(cpu, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}

static int read_options(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const char* const value = i + 1 < count ? words[i + 1] : "";
    if (strcmp(words[i], "--no-sleep") == 0) {
      may_sleep = 0;
    } else if (strcmp(words[i], "--figures") == 0) {
      figures = 1;
    } else if (strcmp(words[i], "--slice-us") == 0 && atol(value) > 0) {
      slice_us = atol(value), ++i;
    } else if (strcmp(words[i], "--compute-us") == 0 && atol(value) > 2 * settle_us) {
      compute_us = atol(value), ++i;
    } else if (strcmp(words[i], "--cases") == 0) {
      wanted = value, ++i;
    } else {
      fprintf(stderr, "net_rma: '%s' is not an option, or has no fit value (see the head of net_rma.c)\n", words[i]);
      return 0;
    }
  }
  return 1;
}

static void open_windows(void) {
  MPI_Win_allocate(is_target() ? (MPI_Aint)sizeof(Part) : 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &locked_words, &locked_window);
  if (is_target()) memset(part, 0, sizeof *part);
  memset(locked_words, 0, 64);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  agree();
}

int main(int count, char** words) {
  int ranks;
  if (!read_options(count, words)) return 2;
  pin();
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  target = ranks - 1;
  buffer = malloc(bulk_bytes);
  samples = malloc(most_samples * sizeof *samples);
  if (ranks < 2 || buffer == NULL || samples == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  memset(buffer, 0, bulk_bytes);
  open_windows();
  if (figures) run_figures();
  for (size_t i = 0; !figures && i < sizeof cases / sizeof *cases; ++i) run(&cases[i]);
  checked = &cases[3];
  check_words(8, 1);
  if (is_caller()) printf("net_rma: done\n"), fflush(stdout);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&locked_window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
