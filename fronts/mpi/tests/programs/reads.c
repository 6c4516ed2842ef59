/* OVER NODES: --set FARSUM_READ_AGE=86400000 --set COPIES=1
 * OVER NODES: --set FARSUM_MPI_STATS=1 --say 'reads of other hosts were answered from copies'
 * What a rank reads of another node may be a copy, but none from before it last heard of others: after each call
 * through which MPI lets a rank hear of another one it reads what that one had written before. The two tell each other
 * when to go on by puts that nobody waits for and loads of their own memory, of which Farsum takes no notice.
 */
#include <sched.h>

#include "check.h"

enum { owner, reader, words = 4096, slots = 8, rounds = 3, tag = 5 };

static int me;
static MPI_Comm pair;
static MPI_Win read_win, go_win, other_win;
static volatile int64_t *part, *go, *other;
static int64_t step;
static MPI_Message probed;

/* Tells the peer, unheard, that this rank has come to `step`. */
static void tell_to_go_on(void) {
  static int64_t told;
  told = step;
  CALL(MPI_Accumulate(&told, 1, MPI_INT64_T, 1 - me, 0, 1, MPI_INT64_T, MPI_REPLACE, go_win));
}

static void await_peer(void) {
  while (go[0] < step) sched_yield();
}

static int64_t read_word(int at) {
  int64_t value = -1;
  CALL(MPI_Get(&value, 1, MPI_INT64_T, owner, at, 1, MPI_INT64_T, read_win));
  CALL(MPI_Win_flush_local(owner, read_win));
  return value;
}

/* ---- calls through which the reader hears of the owner ------------------------------------------------------------
 */

static void barrier(void) { CALL(MPI_Barrier(pair)); }

static void bcast(void) {
  int word = 1;
  CALL(MPI_Bcast(&word, 1, MPI_INT, owner, pair));
}

static void allreduce(void) {
  int one = 1, sum = 0;
  CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, pair));
}

static void alltoallw(void) {
  int from[2] = {0, 0}, to[2];
  const int counts[2] = {1, 1}, starts[2] = {0, sizeof(int)};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  CALL(MPI_Alltoallw(from, counts, starts, types, to, counts, starts, types, pair));
}

static void gatherv(void) {
  int word = 1, all[2];
  const int counts[2] = {1, 1}, starts[2] = {0, 1};
  CALL(MPI_Gatherv(&word, 1, MPI_INT, all, counts, starts, MPI_INT, reader, pair));
}

static void nonblocking_collective(void) {
  MPI_Request request;
  CALL(MPI_Ibarrier(pair, &request));
  CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void new_communicator(void) {
  MPI_Comm copy;
  CALL(MPI_Comm_dup(pair, &copy));
  CALL(MPI_Comm_free(&copy));
}

static void split(void) {
  MPI_Comm part_of_pair;
  CALL(MPI_Comm_split(pair, 0, 0, &part_of_pair));
  CALL(MPI_Comm_free(&part_of_pair));
}

/* The owner sends; how the reader takes it in is `kind`. */
enum reception {
  by_recv,
  by_wait,
  by_test,
  by_waitall,
  by_testall,
  by_waitany,
  by_testany,
  by_waitsome,
  by_testsome,
  by_get_status,
  by_probe,
  by_iprobe,
  by_mprobe,
  by_improbe,
  by_sendrecv,
  by_sendrecv_replace,
  receptions
};

static void take_in(enum reception kind) {
  int flag = 0, index = 0, done = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  MPI_Message message;
  if (kind >= by_wait && kind <= by_get_status) CALL(MPI_Irecv(NULL, 0, MPI_INT, owner, tag, pair, &request));
  switch (kind) {
    case by_wait:
      CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    case by_test:
      while (!flag) CALL(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
      break;
    case by_waitall:
      CALL(MPI_Waitall(1, &request, &status));
      break;
    case by_testall:
      while (!flag) CALL(MPI_Testall(1, &request, &flag, &status));
      break;
    case by_waitany:
      CALL(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
      break;
    case by_testany:
      while (!flag) CALL(MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE));
      break;
    case by_waitsome:
      CALL(MPI_Waitsome(1, &request, &done, &index, &status));
      break;
    case by_testsome:
      while (done == 0) CALL(MPI_Testsome(1, &request, &done, &index, &status));
      break;
    case by_get_status:
      while (!flag) CALL(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
      break;
    case by_probe:
      CALL(MPI_Probe(owner, tag, pair, MPI_STATUS_IGNORE));
      break;
    case by_iprobe:
      while (!flag) CALL(MPI_Iprobe(owner, tag, pair, &flag, MPI_STATUS_IGNORE));
      break;
    case by_mprobe:
      CALL(MPI_Mprobe(owner, tag, pair, &message, MPI_STATUS_IGNORE));
      CALL(MPI_Mrecv(NULL, 0, MPI_INT, &message, MPI_STATUS_IGNORE));
      break;
    case by_improbe:
      while (!flag) CALL(MPI_Improbe(owner, tag, pair, &flag, &probed, MPI_STATUS_IGNORE));
      break;
    case by_sendrecv:
      CALL(MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, NULL, 0, MPI_INT, owner, tag, pair, MPI_STATUS_IGNORE));
      break;
    case by_sendrecv_replace:
      CALL(MPI_Sendrecv_replace(NULL, 0, MPI_INT, MPI_PROC_NULL, tag + 1, owner, tag, pair, MPI_STATUS_IGNORE));
      break;
    case by_recv:
    case receptions:
      CALL(MPI_Recv(NULL, 0, MPI_INT, owner, tag, pair, MPI_STATUS_IGNORE));
      break;
  }
  if (kind == by_get_status) CALL(MPI_Request_free(&request));
}

static void take_rest_in(enum reception kind) {
  if (kind == by_probe || kind == by_iprobe) CALL(MPI_Recv(NULL, 0, MPI_INT, owner, tag, pair, MPI_STATUS_IGNORE));
  if (kind == by_improbe) CALL(MPI_Mrecv(NULL, 0, MPI_INT, &probed, MPI_STATUS_IGNORE));
}

static void synchronous_send(void) {
  if (me == reader)
    CALL(MPI_Ssend(NULL, 0, MPI_INT, owner, tag, pair));
  else
    CALL(MPI_Recv(NULL, 0, MPI_INT, reader, tag, pair, MPI_STATUS_IGNORE));
}

static int64_t other_value(MPI_Op op) {
  const int64_t none = 0;
  int64_t value = -1;
  CALL(MPI_Fetch_and_op(&none, &value, MPI_INT64_T, owner, 0, op, other_win));
  CALL(MPI_Win_flush(owner, other_win));
  return value;
}

static void fetched(MPI_Op op) {
  if (me == owner)
    CALL(MPI_Accumulate(&step, 1, MPI_INT64_T, owner, 0, 1, MPI_INT64_T, MPI_REPLACE, other_win));
  else
    while (other_value(op) != step) sched_yield();
  if (me == owner) CALL(MPI_Win_flush(owner, other_win));
}

static void fetch_and_add(void) { fetched(MPI_SUM); }
static void atomic_read(void) { fetched(MPI_NO_OP); }

static void compare_and_swap(void) {
  if (me == owner) {
    fetched(MPI_SUM);
    return;
  }
  int64_t seen = -1;
  while (seen != step) {
    CALL(MPI_Compare_and_swap(&step, &step, &seen, MPI_INT64_T, owner, 0, other_win));
    CALL(MPI_Win_flush(owner, other_win));
  }
}

/* Through memory of its own, of which Farsum must be told. */
static void own_memory(void) {
  if (me == owner) {
    CALL(MPI_Accumulate(&step, 1, MPI_INT64_T, reader, 1, 1, MPI_INT64_T, MPI_REPLACE, other_win));
    CALL(MPI_Win_flush(reader, other_win));
    return;
  }
  while (other[1] != step) sched_yield();
  CALL(MPI_Win_sync(other_win));
}

static void new_window(void) {
  MPI_Win win;
  void* memory;
  CALL(MPI_Win_allocate(8, 1, MPI_INFO_NULL, pair, &memory, &win));
  CALL(MPI_Win_free(&win));
}

static void fence(void) {
  static MPI_Win win = MPI_WIN_NULL;
  void* memory;
  if (win == MPI_WIN_NULL) CALL(MPI_Win_allocate(8, 1, MPI_INFO_NULL, pair, &memory, &win));
  CALL(MPI_Win_fence(0, win));
  if (step < 0) CALL(MPI_Win_free(&win));
}

static void post_and_start(void) {
  MPI_Group group, peers;
  const int peer = 1 - me;
  MPI_Win win;
  void* memory;
  CALL(MPI_Comm_group(pair, &group));
  CALL(MPI_Group_incl(group, 1, &peer, &peers));
  CALL(MPI_Win_allocate(8, 1, MPI_INFO_NULL, pair, &memory, &win));
  if (me == owner) {
    CALL(MPI_Win_post(peers, 0, win));
    CALL(MPI_Win_wait(win));
  } else {
    CALL(MPI_Win_start(peers, 0, win));
    CALL(MPI_Win_complete(win));
  }
  CALL(MPI_Win_free(&win));
  CALL(MPI_Group_free(&peers));
  CALL(MPI_Group_free(&group));
}

/* ---- one check
 * ------------------------------------------------------------------------------------------------------- */

/* Reads until the copies that may answer are there. */
static void warm_up(void) {
  for (int i = 0; i < 4; ++i) (void)read_word(i % slots);
}

static void check(const char* name, void (*both)(void), enum reception kind) {
  for (int round = 0; round < rounds; ++round) {
    const int at = round % slots;
    ++step;
    if (me == reader) {
      warm_up();
      tell_to_go_on();
    } else {
      await_peer();
      part[at] = step;
      CALL(MPI_Win_sync(read_win));
    }
    if (both != NULL) {
      both();
    } else if (me == owner) {
      CALL(MPI_Send(NULL, 0, MPI_INT, reader, tag, pair));
    } else {
      take_in(kind);
    }
    if (me == reader) {
      const int64_t value = read_word(at);
      CHECK(value == step, "after %s (%d) %ld was read, not %ld", name, kind, (long)value, (long)step);
      if (both == NULL) take_rest_in(kind);
    }
  }
}

/* Without anything heard a copy answers; own changes are in what is read next. */
static void check_copies(void) {
  ++step;
  if (me == owner) {
    await_peer();
    part[3] = step;
    CALL(MPI_Win_sync(read_win));
    tell_to_go_on();
    CALL(MPI_Win_flush(reader, go_win));
    CALL(MPI_Barrier(pair));
    return;
  }
  warm_up();
  const int64_t before = read_word(3);
  tell_to_go_on();
  while (go[0] < step) sched_yield();
  const int64_t unheard = read_word(3);
  if (getenv("COPIES") != NULL) CHECK(unheard == before, "%ld was read, though nothing was heard", (long)unheard);
  CALL(MPI_Win_sync(read_win));
  CHECK(read_word(3) == step, "MPI_Win_sync was not heard");
  for (int64_t i = 1; i <= 20; ++i) {
    const int64_t value = 1000 * i;
    CALL(MPI_Put(&value, 1, MPI_INT64_T, owner, 5, 1, MPI_INT64_T, read_win));
    CALL(MPI_Win_flush(owner, read_win));
    CHECK(read_word(5) == value, "an own put was not read");
    CALL(MPI_Accumulate(&i, 1, MPI_INT64_T, owner, 5, 1, MPI_INT64_T, MPI_SUM, read_win));
    CALL(MPI_Win_flush(owner, read_win));
    CHECK(read_word(5) == value + i, "an own accumulate was not read");
    warm_up();
  }
  CALL(MPI_Barrier(pair));
}

/* Of zeroed words, in an epoch of lock_all. */
static int64_t* open_window(size_t count, MPI_Win* win) {
  int64_t* memory;
  CALL(MPI_Win_allocate((MPI_Aint)(count * sizeof *memory), sizeof *memory, MPI_INFO_NULL, pair, &memory, win));
  memset(memory, 0, count * sizeof *memory);
  CALL(MPI_Win_lock_all(0, *win));
  return memory;
}

static void close_window(MPI_Win* win) {
  CALL(MPI_Win_unlock_all(*win));
  CALL(MPI_Win_free(win));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  me = my_rank(MPI_COMM_WORLD);
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &pair));
  part = open_window(words, &read_win);
  go = open_window(slots, &go_win);
  other = open_window(slots, &other_win);
  MPI_Barrier(pair);
  check_copies();
  check("a barrier", barrier, receptions);
  check("a broadcast", bcast, receptions);
  check("a reduction", allreduce, receptions);
  check("MPI_Alltoallw", alltoallw, receptions);
  check("MPI_Gatherv", gatherv, receptions);
  check("a nonblocking collective call", nonblocking_collective, receptions);
  check("MPI_Comm_dup", new_communicator, receptions);
  check("MPI_Comm_split", split, receptions);
  for (int kind = 0; kind < receptions; ++kind) check("a message", NULL, (enum reception)kind);
  check("MPI_Ssend", synchronous_send, receptions);
  check("MPI_Fetch_and_op", fetch_and_add, receptions);
  check("an atomic read", atomic_read, receptions);
  check("MPI_Compare_and_swap", compare_and_swap, receptions);
  check("a load and MPI_Win_sync", own_memory, receptions);
  check("a new window", new_window, receptions);
  check("post and start", post_and_start, receptions);
  check("a fence", fence, receptions);
  check_copies();
  step = -1;
  fence();
  close_window(&other_win);
  close_window(&go_win);
  close_window(&read_win);
  CALL(MPI_Comm_free(&pair));
  return finish();
}
