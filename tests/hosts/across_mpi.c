/* `across` in MPI: ranks that may run on several hosts, cases that check sums and values. It knows nothing of Farsum.
 *
 *   across_mpi CASE...        `all`: each in turn; `list` names them. tests/hosts/run_across --mpi starts it.
 *   ACROSS_INFO=KEY           windows are allocated with the info key KEY=true. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t word;

static int rank, size;
static const char* current = "MPI_Init";
static MPI_Info hints = MPI_INFO_NULL; /* of every window whose memory the library allocates */

static word mark(int from, int to, size_t index) { return (word)(from + 1) << 40 | (word)(to + 1) << 20 | index; }

static void fail(const char* what, size_t index, word got, word expected) {
  printf("FAILED %s at rank %d: %s %zu is %llu, not %llu\n", current, rank, what, index, (unsigned long long)got,
         (unsigned long long)expected);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void equal(word got, word expected, const char* what, size_t index) {
  if (got != expected) fail(what, index, got, expected);
}

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank + size - 1) % size; }

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void* room(size_t bytes) {
  void* memory = calloc(bytes + 1, 1);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

/* Zeroed on all ranks before anybody gets at it. MPICH 4.0 and 5.0 without Farsum lay parts over one another whose size
 * is no multiple of 16 bytes; here none is, so that the program can be tried without. */
static MPI_Win allocate(size_t count, word** mine) {
  MPI_Win window;
  count += count % 2;
  MPI_Win_allocate((MPI_Aint)(count * sizeof(word)), sizeof(word), hints, MPI_COMM_WORLD, mine, &window);
  if (count != 0) memset(*mine, 0, count * sizeof(word));
  barrier();
  return window;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static word sum_of(word mine) {
  word all;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* That 0 to all - 1 were drawn, each once. */
static void equal_tickets(const word* tickets, size_t count, word all, const char* what) {
  word sum = 0, squares = 0, expected_sum = 0, expected_squares = 0;
  for (size_t i = 0; i < count; ++i) sum += tickets[i], squares += tickets[i] * tickets[i];
  for (word ticket = 0; ticket < all; ++ticket) expected_sum += ticket, expected_squares += ticket * ticket;
  equal(sum_of(count), all, what, 0);
  equal(sum_of(sum), expected_sum, what, 1);
  equal(sum_of(squares), expected_squares, what, 2);
}

/* ---- transfers under lock_all */

static void put_and_get_words(size_t count) {
  word* mine;
  const size_t ranks = (size_t)size;
  MPI_Win window = allocate(count * ranks, &mine);
  word* values = room(count * ranks * sizeof(word));
  word* copy = room(count * ranks * sizeof(word));
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < size; ++target) {
    word* row = values + (size_t)target * count;
    for (size_t i = 0; i < count; ++i) row[i] = mark(rank, target, i);
    MPI_Put(row, (int)count, MPI_UINT64_T, target, (MPI_Aint)(count * (size_t)rank), (int)count, MPI_UINT64_T, window);
  }
  MPI_Win_flush_all(window);
  barrier();
  MPI_Win_sync(window);
  for (int target = 0; target < size; ++target) {
    MPI_Get(copy, (int)(count * ranks), MPI_UINT64_T, target, 0, (int)(count * ranks), MPI_UINT64_T, window);
    MPI_Win_flush_local(target, window);
    for (size_t i = 0; i < count * ranks; ++i)
      equal(copy[i], mark((int)(i / count), target, i % count), "the word got", i);
  }
  for (size_t i = 0; i < count * ranks; ++i) equal(mine[i], mark((int)(i / count), rank, i % count), "the word put", i);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  free(values);
  free(copy);
}

static void put_and_get(void) {
  put_and_get_words(1);
  put_and_get_words(13);
  put_and_get_words(5000);
}

static void put_and_get_1_mib(void) { put_and_get_words(131072); }

static void accumulate_doubles(size_t count, int rounds) {
  word* mine;
  MPI_Win window = allocate(count, &mine);
  double* values = room(count * sizeof(double));
  for (size_t i = 0; i < count; ++i) values[i] = (double)(i % 100) + rank;
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < rounds; ++round) {
    for (int target = 0; target < size; ++target)
      MPI_Accumulate(values, (int)count, MPI_DOUBLE, target, 0, (int)count, MPI_DOUBLE, MPI_SUM, window);
    if (round % 8 == 7) MPI_Win_flush_all(window);
  }
  MPI_Win_unlock_all(window);
  barrier();
  for (size_t i = 0; i < count; ++i)
    equal((word)((double*)mine)[i], (word)rounds * ((word)size * (i % 100) + (word)(size * (size - 1) / 2)), "the sum",
          i);
  MPI_Win_free(&window);
  free(values);
}

static void accumulate(void) {
  accumulate_doubles(1, 200);
  accumulate_doubles(5000, 10);
}

static void accumulate_1_mib(void) { accumulate_doubles(131072, 3); }

static void fetch_and_op(void) {
  enum { each = 200 };
  word *mine, tickets[each];
  const word one = 1;
  MPI_Win window = allocate(1, &mine);
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < size; ++target) {
    for (int i = 0; i < each; ++i) {
      MPI_Fetch_and_op(&one, &tickets[i], MPI_UINT64_T, target, 0, MPI_SUM, window);
      MPI_Win_flush(target, window);
    }
    for (int i = 1; i < each; ++i) equal(tickets[i] > tickets[i - 1], 1, "that a later ticket is greater", (size_t)i);
    equal_tickets(tickets, each, (word)size * each, "the tickets");
  }
  MPI_Win_unlock_all(window);
  barrier();
  equal(*mine, (word)size * each, "the counter", 0);
  MPI_Win_free(&window);
}

static void compare_and_swap(void) {
  enum { each = 50 };
  word* mine;
  MPI_Win window = allocate(1, &mine);
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < size; ++target) {
    word seen = 0;
    for (int done = 0; done < each;) {
      const word expected = seen, desired = seen + 1;
      MPI_Compare_and_swap(&desired, &expected, &seen, MPI_UINT64_T, target, 0, window);
      MPI_Win_flush(target, window);
      if (seen == expected) ++done, ++seen;
    }
  }
  MPI_Win_unlock_all(window);
  barrier();
  equal(*mine, (word)size * each, "the word that was swapped up", 0);
  MPI_Win_free(&window);
}

static void get_accumulate(void) {
  enum { count = 500, rounds = 20 };
  word* mine;
  static word old[rounds][count];
  word* ones = room(count * sizeof(word));
  for (int i = 0; i < count; ++i) ones[i] = 1;
  MPI_Win window = allocate(count, &mine);
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < size; ++target) {
    for (int round = 0; round < rounds; ++round)
      MPI_Get_accumulate(ones, count, MPI_UINT64_T, old[round], count, MPI_UINT64_T, target, 0, count, MPI_UINT64_T,
                         MPI_SUM, window);
    MPI_Win_flush(target, window);
    for (int element = 0; element < count; element += count - 1) {
      word tickets[rounds];
      for (int round = 0; round < rounds; ++round) tickets[round] = old[round][element];
      equal_tickets(tickets, rounds, (word)size * rounds, "what was fetched of an element");
    }
  }
  MPI_Win_unlock_all(window);
  barrier();
  for (size_t i = 0; i < count; ++i) equal(mine[i], (word)size * rounds, "the sum", i);
  MPI_Win_free(&window);
  free(ones);
}

/* A patch of a matrix by a vector type, and blocks of many lengths by an indexed one: put, added to, got. */
static void through_type(MPI_Datatype type, const size_t* places, size_t count, size_t words_each) {
  word* mine;
  MPI_Win window = allocate(words_each * (size_t)size, &mine);
  const MPI_Aint offset = (MPI_Aint)(words_each * (size_t)rank);
  word* values = room(count * (size_t)size * sizeof(word));
  word* ones = room(count * sizeof(word));
  word* got = room(count * sizeof(word));
  word* expected = room(words_each * sizeof(word));
  for (size_t i = 0; i < count; ++i) ones[i] = 1;
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < size; ++target) {
    word* row = values + (size_t)target * count;
    for (size_t i = 0; i < count; ++i) row[i] = mark(rank, target, i);
    MPI_Put(row, (int)count, MPI_UINT64_T, target, offset, 1, type, window);
    MPI_Win_flush(target, window);
    MPI_Accumulate(ones, (int)count, MPI_UINT64_T, target, offset, 1, type, MPI_SUM, window);
    MPI_Win_flush(target, window);
    MPI_Get(got, (int)count, MPI_UINT64_T, target, offset, 1, type, window);
    MPI_Win_flush(target, window);
    for (size_t i = 0; i < count; ++i) equal(got[i], mark(rank, target, i) + 1, "the word got", i);
  }
  MPI_Win_unlock_all(window);
  barrier();
  for (int from = 0; from < size; ++from) {
    memset(expected, 0, words_each * sizeof(word));
    for (size_t i = 0; i < count; ++i) expected[places[i]] = mark(from, rank, i) + 1;
    for (size_t i = 0; i < words_each; ++i) equal(mine[(size_t)from * words_each + i], expected[i], "the word", i);
  }
  MPI_Win_free(&window);
  free(values);
  free(ones);
  free(got);
  free(expected);
}

static void strided(void) {
  enum { rows = 120, columns = 7, width = 20 };
  static size_t places[rows * columns];
  MPI_Datatype patch;
  for (size_t i = 0; i < rows * columns; ++i) places[i] = i / columns * width + i % columns;
  MPI_Type_vector(rows, columns, width, MPI_UINT64_T, &patch);
  MPI_Type_commit(&patch);
  through_type(patch, places, rows * columns, (size_t)rows * width);
  MPI_Type_free(&patch);
}

static void indexed(void) {
  enum { pieces = 700 };
  static int lengths[pieces], offsets[pieces];
  static size_t places[3 * pieces];
  size_t count = 0;
  MPI_Datatype blocks;
  for (int piece = 0; piece < pieces; ++piece) {
    const int slot = piece * 277 % pieces; /* in no order, each once */
    offsets[piece] = slot * 4;
    lengths[piece] = 1 + slot % 3;
    for (int i = 0; i < lengths[piece]; ++i) places[count++] = (size_t)(slot * 4 + i);
  }
  MPI_Type_indexed(pieces, lengths, offsets, MPI_UINT64_T, &blocks);
  MPI_Type_commit(&blocks);
  through_type(blocks, places, count, (size_t)pieces * 4);
  MPI_Type_free(&blocks);
}

static void requests(void) {
  enum { count = 40 };
  word *mine, values[count], back[count];
  MPI_Request under_way[count];
  MPI_Status statuses[count];
  MPI_Win window = allocate((size_t)count * (size_t)size, &mine);
  MPI_Win_lock_all(0, window);
  for (size_t i = 0; i < count; ++i) {
    values[i] = mark(rank, right(), i);
    MPI_Rput(&values[i], 1, MPI_UINT64_T, right(), (MPI_Aint)((size_t)rank * count + i), 1, MPI_UINT64_T, window,
             &under_way[i]);
  }
  MPI_Waitall(count, under_way, statuses);
  MPI_Win_flush(right(), window);
  for (size_t i = 0; i < count; ++i)
    MPI_Rget(&back[i], 1, MPI_UINT64_T, right(), (MPI_Aint)((size_t)rank * count + i), 1, MPI_UINT64_T, window,
             &under_way[i]);
  for (int done = 0; !done;) MPI_Testall(count, under_way, &done, statuses);
  for (size_t i = 0; i < count; ++i) equal(back[i], values[i], "the word got", i);
  MPI_Win_unlock_all(window);
  barrier();
  for (size_t i = 0; i < count; ++i) equal(mine[(size_t)left() * count + i], mark(left(), rank, i), "the word put", i);
  MPI_Win_free(&window);
}

/* A long put of rank 0, which computes from then on until the target has seen it all, and a little longer. Whether it
 * was done at rank 0's first look. */
static int is_done_at_the_first_look(MPI_Win window, const word* mine, size_t count, word attempt) {
  const double patience_s = 20, for_the_answer_s = 0.1;
  const int target = size - 1;
  int done = 0;
  if (rank == 0) {
    word* values = room(count * sizeof(word));
    MPI_Request request;
    for (size_t i = 0; i < count; ++i) values[i] = mark(0, target, i) + attempt;
    MPI_Rput(values, (int)count, MPI_UINT64_T, target, 0, (int)count, MPI_UINT64_T, window, &request);
    for (const double begin = seconds(); __atomic_load_n(&mine[count], __ATOMIC_ACQUIRE) != attempt;)
      if (seconds() - begin > patience_s) fail("what has come without a call of the origin", 0, 0, 1);
    for (const double begin = seconds(); seconds() - begin < for_the_answer_s;) {
    }
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(values);
  } else if (rank == target) {
    for (size_t i = 0; i < count; ++i)
      while (__atomic_load_n(&mine[i], __ATOMIC_ACQUIRE) != mark(0, target, i) + attempt) usleep(1000);
    MPI_Put(&attempt, 1, MPI_UINT64_T, 0, (MPI_Aint)count, 1, MPI_UINT64_T, window);
    MPI_Win_flush(0, window);
  }
  MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return done;
}

/* More than leaves at once arrives though its origin makes no call, and so does the answer: on a machine with other
 * work perhaps not each time. */
static void origin_computes(void) {
  enum { count = 1 << 20, most_attempts = 10 };
  if (size == 1) return;
  word* mine;
  MPI_Win window = allocate(count + 1, &mine);
  int done = 0;
  MPI_Win_lock_all(0, window);
  for (word attempt = 1; !done && attempt <= most_attempts; ++attempt)
    done = is_done_at_the_first_look(window, mine, count, attempt);
  equal((word)done, 1, "done at the first look", 0);
  MPI_Win_unlock_all(window);
  barrier();
  MPI_Win_free(&window);
}

/* ---- epochs */

/* Two words that are equal whenever nobody holds the lock: any overlap loses a count. */
static void exclusive_lock(void) {
  enum { each = 40 };
  word *mine, both[2];
  MPI_Win window = allocate(2, &mine);
  for (int round = 0; round < each; ++round) {
    for (int target = 0; target < size; ++target) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
      MPI_Get(both, 2, MPI_UINT64_T, target, 0, 2, MPI_UINT64_T, window);
      MPI_Win_flush(target, window);
      equal(both[0], both[1], "under the lock, the first word", (size_t)target);
      ++both[0], ++both[1];
      MPI_Put(&both[0], 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, window);
      if (round % 2 == 0) MPI_Win_flush(target, window);
      MPI_Put(&both[1], 1, MPI_UINT64_T, target, 1, 1, MPI_UINT64_T, window);
      MPI_Win_unlock(target, window);
    }
  }
  barrier();
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  equal(mine[0], (word)size * each, "the counter under the lock", 0);
  MPI_Win_unlock(rank, window);
  MPI_Win_free(&window);
}

static void shared_lock(void) {
  word *mine, both[2], written = 0;
  MPI_Win window = allocate(2, &mine);
  for (int round = 0; round < 60; ++round) {
    const int writes = (round + rank) % 4 == 0;
    MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(both, 2, MPI_UINT64_T, 0, 0, 2, MPI_UINT64_T, window);
    MPI_Win_flush(0, window);
    equal(both[0], both[1], "under a lock, the first word", 0);
    if (writes) {
      ++written, ++both[0], ++both[1];
      MPI_Put(both, 2, MPI_UINT64_T, 0, 0, 2, MPI_UINT64_T, window);
    }
    MPI_Win_unlock(0, window);
  }
  written = sum_of(written);
  if (rank == 0) equal(mine[0], written, "what the writers wrote", 0);
  MPI_Win_free(&window);
}

static void fence(void) {
  word* mine;
  word* values = room((size_t)size * sizeof(word));
  const word one = 1;
  MPI_Win window = allocate((size_t)size + 1, &mine);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
  for (size_t round = 1; round <= 30; ++round) {
    for (int target = 0; target < size; ++target) {
      values[target] = mark(rank, target, round);
      MPI_Put(&values[target], 1, MPI_UINT64_T, target, rank, 1, MPI_UINT64_T, window);
      MPI_Accumulate(&one, 1, MPI_UINT64_T, target, size, 1, MPI_UINT64_T, MPI_SUM, window);
    }
    MPI_Win_fence(0, window);
    for (int from = 0; from < size; ++from) equal(mine[from], mark(from, rank, round), "after the fence, word", round);
    equal(mine[size], round * (word)size, "after the fence, the sum", round);
    MPI_Win_fence(0, window);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Win_free(&window);
  free(values);
}

static void ring_of_posts(void) {
  word* mine;
  MPI_Group world, to, from;
  const int to_rank = right(), from_rank = left();
  if (size < 2) return;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &to_rank, &to);
  MPI_Group_incl(world, 1, &from_rank, &from);
  MPI_Win window = allocate(2, &mine);
  for (size_t round = 1; round <= 40; ++round) {
    const word value = mark(rank, right(), round), one = 1;
    int done = 0;
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(&value, 1, MPI_UINT64_T, right(), 0, 1, MPI_UINT64_T, window);
    MPI_Accumulate(&one, 1, MPI_UINT64_T, right(), 1, 1, MPI_UINT64_T, MPI_SUM, window);
    MPI_Win_complete(window);
    while (round % 3 == 0 && !done) MPI_Win_test(window, &done);
    if (!done) MPI_Win_wait(window);
    equal(mine[0], mark(left(), rank, round), "behind wait, the word of round", round);
    equal(mine[1], round, "behind wait, the sum of round", round);
  }
  MPI_Win_free(&window);
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&world);
}

/* Rank 0 makes no call while the others work on it. */
static void owner_makes_no_call(void) {
  enum { each = 100 };
  word *mine, old;
  const word one = 1;
  MPI_Win window = allocate(2, &mine);
  if (rank == 0) {
    while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != (word)(size - 1) * each) {
    }
  } else {
    for (int i = 0; i < each; ++i) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
      MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 0, 1, MPI_SUM, window);
      MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, window);
      MPI_Win_unlock(0, window);
    }
  }
  barrier();
  if (rank == 0) equal(mine[1], (word)(size - 1) * each, "what was fetched and added", 0);
  MPI_Win_free(&window);
}

/* ---- windows of all kinds */

static void created(void) {
  enum { count = 3000 };
  word* heap = room(count * sizeof(word));
  word* ones = room(count * sizeof(word));
  MPI_Win window;
  for (int i = 0; i < count; ++i) heap[i] = 5, ones[i] = 1;
  MPI_Win_create(heap, count * sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < size; ++target)
    MPI_Accumulate(ones, count, MPI_UINT64_T, target, 0, count, MPI_UINT64_T, MPI_SUM, window);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  for (size_t i = 0; i < count; ++i) equal(heap[i], 5 + (word)size, "the word of the heap", i);
  free(heap);
  free(ones);
}

static void dynamic(void) {
  enum { count = 1000 };
  MPI_Win window;
  const word one = 1;
  MPI_Aint* there = room((size_t)size * sizeof(MPI_Aint));
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < 4; ++round) {
    word* memory = room(count * sizeof(word));
    MPI_Aint mine;
    MPI_Win_attach(window, memory, count * sizeof(word));
    MPI_Get_address(memory, &mine);
    MPI_Allgather(&mine, 1, MPI_AINT, there, 1, MPI_AINT, MPI_COMM_WORLD);
    for (int target = 0; target < size; ++target) {
      for (int i = 0; i < count; i += 100)
        MPI_Accumulate(&one, 1, MPI_UINT64_T, target, MPI_Aint_add(there[target], i * 8), 1, MPI_UINT64_T, MPI_SUM,
                       window);
    }
    MPI_Win_flush_all(window);
    barrier();
    for (size_t i = 0; i < count; ++i) equal(memory[i], i % 100 == 0 ? (word)size : 0, "the attached word", i);
    MPI_Win_detach(window, memory);
    barrier();
    free(memory);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  free(there);
}

static void over_a_communicator(MPI_Comm part) {
  int me, ranks, target;
  word* mine;
  MPI_Win window;
  MPI_Comm_rank(part, &me);
  MPI_Comm_size(part, &ranks);
  MPI_Win_allocate(ranks * (MPI_Aint)sizeof(word), sizeof(word), MPI_INFO_NULL, part, &mine, &window);
  MPI_Win_lock_all(0, window);
  const word value = mark(me, 0, 1);
  for (target = 0; target < ranks; ++target) MPI_Put(&value, 1, MPI_UINT64_T, target, me, 1, MPI_UINT64_T, window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(part);
  for (int from = 0; from < ranks; ++from) equal(mine[from], mark(from, 0, 1), "the communicator's word", (size_t)from);
  MPI_Win_free(&window);
}

static void communicators(void) {
  for (int round = 0; round < 3; ++round) {
    MPI_Comm part, backwards;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &backwards);
    over_a_communicator(backwards);
    over_a_communicator(part);
    over_a_communicator(MPI_COMM_SELF);
    MPI_Comm_free(&part);
    MPI_Comm_free(&backwards);
  }
}

static void many_windows(void) {
  enum { windows = 5 };
  const word one = 1;
  for (int round = 0; round < 6; ++round) {
    MPI_Win window[windows];
    word* mine[windows];
    for (size_t i = 0; i < windows; ++i) window[i] = allocate(10 + 100 * i, &mine[i]);
    for (int i = 0; i < windows; ++i) {
      MPI_Win_lock_all(0, window[i]);
      for (int target = 0; target < size; ++target)
        MPI_Accumulate(&one, 1, MPI_UINT64_T, target, 9, 1, MPI_UINT64_T, MPI_SUM, window[i]);
      MPI_Win_unlock_all(window[i]);
    }
    barrier();
    for (int i = 0; i < windows; ++i) {
      equal(mine[i * 2 % windows][9], (word)size, "the word of window", (size_t)i);
      MPI_Win_free(&window[i * 2 % windows]);
    }
  }
}

/* ---- owners that wait in the library, by each kind of call */

enum { kinds_of_waits = 7 };

static void wait_for_the_last(int kind) {
  word sent = (word)kind, received = 0;
  MPI_Request request;
  MPI_Status status;
  const int last = size - 1;
  switch (kind) {
    case 0:
      barrier();
      return;
    case 1:
      equal(sum_of(rank == last), 1, "the sum of", 0);
      return;
    case 2:
      MPI_Bcast(&received, 1, MPI_UINT64_T, last, MPI_COMM_WORLD);
      return;
    case 3:
      MPI_Recv(&received, 1, MPI_UINT64_T, last, kind, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      break;
    case 4:
      MPI_Irecv(&received, 1, MPI_UINT64_T, last, kind, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case 5:
      MPI_Probe(last, kind, MPI_COMM_WORLD, &status);
      MPI_Recv(&received, 1, MPI_UINT64_T, last, kind, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      break;
    default:
      MPI_Sendrecv(&sent, 1, MPI_UINT64_T, last, kind, &received, 1, MPI_UINT64_T, last, kind, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
  }
  equal(received, sent, "the message of kind", (size_t)kind);
}

static void end_the_waits(int kind) {
  word sent = (word)kind, received = 0;
  if (kind < 3) {
    if (kind == 0) barrier();
    if (kind == 1) equal(sum_of(1), 1, "the sum of", 0);
    if (kind == 2) MPI_Bcast(&sent, 1, MPI_UINT64_T, rank, MPI_COMM_WORLD);
    return;
  }
  for (int other = 0; other < rank; ++other) {
    if (kind == 6) {
      MPI_Sendrecv(&sent, 1, MPI_UINT64_T, other, kind, &received, 1, MPI_UINT64_T, other, kind, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    } else {
      MPI_Send(&sent, 1, MPI_UINT64_T, other, kind, MPI_COMM_WORLD);
    }
  }
}

/* The last rank updates all others, which wait for it. */
static void owner_waits(void) {
  enum { times = 300 };
  word* mine;
  MPI_Win window = allocate(kinds_of_waits, &mine);
  MPI_Win_lock_all(0, window);
  for (int kind = 0; kind < kinds_of_waits; ++kind) {
    barrier();
    if (rank != size - 1) {
      wait_for_the_last(kind);
    } else {
      for (word i = 0; i < times; ++i) {
        for (int target = 0; target < rank; ++target) {
          const word one = 1;
          word before;
          MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, target, kind, MPI_SUM, window);
          MPI_Win_flush(target, window);
          equal(before, i, "the word before update", (size_t)i);
        }
      }
      end_the_waits(kind);
    }
  }
  barrier();
  for (int kind = 0; kind < kinds_of_waits; ++kind)
    equal(mine[kind], rank == size - 1 ? 0 : times, "the updated word", (size_t)kind);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

static const struct {
  const char* name;
  void (*body)(void);
} cases[] = {{"put_and_get", put_and_get},
             {"put_and_get_1_mib", put_and_get_1_mib},
             {"accumulate", accumulate},
             {"accumulate_1_mib", accumulate_1_mib},
             {"fetch_and_op", fetch_and_op},
             {"compare_and_swap", compare_and_swap},
             {"get_accumulate", get_accumulate},
             {"strided", strided},
             {"indexed", indexed},
             {"requests", requests},
             {"origin_computes", origin_computes},
             {"exclusive_lock", exclusive_lock},
             {"shared_lock", shared_lock},
             {"fence", fence},
             {"ring_of_posts", ring_of_posts},
             {"owner_makes_no_call", owner_makes_no_call},
             {"owner_waits", owner_waits},
             {"created", created},
             {"dynamic", dynamic},
             {"communicators", communicators},
             {"many_windows", many_windows}};
enum { case_count = sizeof cases / sizeof *cases };

static int run(const char* name) {
  int done = 0;
  for (int i = 0; i < case_count; ++i) {
    if (strcmp(name, "all") != 0 && strcmp(name, cases[i].name) != 0) continue;
    current = cases[i].name;
    cases[i].body();
    barrier();
    if (rank == 0) printf("ok %s\n", current);
    fflush(stdout);
    ++done;
  }
  return done;
}

int main(int argc, char** argv) {
  int done = 0;
  if (argc == 2 && strcmp(argv[1], "list") == 0) {
    for (int i = 0; i < case_count; ++i) puts(cases[i].name);
    return 0;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (getenv("ACROSS_INFO") != NULL) {
    MPI_Info_create(&hints);
    MPI_Info_set(hints, getenv("ACROSS_INFO"), "true");
  }
  for (int i = 1; i < argc; ++i) done += run(argv[i]);
  if (rank == 0) printf("all of %d cases on %d ranks\n", done, size);
  fflush(stdout);
  if (hints != MPI_INFO_NULL) MPI_Info_free(&hints);
  current = "MPI_Finalize";
  MPI_Finalize();
  return done == 0;
}
