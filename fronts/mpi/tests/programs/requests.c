/* RANKS: 2 4
 * Takes seconds: every wait and test call, by several threads
 * In make test-all (*.4.nodes): every wait and test call, by several threads
 * Requests of one-sided operations in every wait and test call, alone and among ordinary ones, by several threads,
 * freed before they are complete, and left to MPI_Finalize. An even number of ranks. Natively MPICH 4.0 fails where
 * such a request is freed.
 */
#include <pthread.h>

#include "check.h"

#define ELEMENTS (1 << 20)
#define PIECES 4
#define PIECE (ELEMENTS / PIECES)

static int rank, peer;
static int *memory, *result;
static MPI_Win window;
static MPI_Status* volatile no_statuses; /* MPI_STATUSES_IGNORE, which compilers take for a short array */

#define check(condition, what) CHECK(condition, "rank %d: %s", rank, what)

static void clear(void) { memset(result, 0xff, ELEMENTS * sizeof(int)); }

static int arrived(int first, int count) {
  for (int i = first; i < first + count; ++i) {
    if (result[i] != peer * 1000003 + i) return 0;
  }
  return 1;
}

static void get_pieces(MPI_Request requests[PIECES]) {
  clear();
  for (int i = 0; i < PIECES; ++i) {
    MPI_Rget(result + i * PIECE, PIECE, MPI_INT, peer, (MPI_Aint)i * PIECE, PIECE, MPI_INT, window, &requests[i]);
  }
}

static int all_null(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    if (requests[i] != MPI_REQUEST_NULL) return 0;
  }
  return 1;
}

static void wait_and_test_one(void) {
  MPI_Request requests[PIECES];
  MPI_Status status;
  int flag = 0;
  get_pieces(requests);
  for (int i = 0; i < PIECES; ++i) {
    check(MPI_Wait(&requests[i], &status) == MPI_SUCCESS && arrived(i * PIECE, PIECE), "Wait returns with the data");
  }
  check(all_null(PIECES, requests), "Wait frees the request");
  get_pieces(requests);
  for (int i = 0; i < PIECES; ++i) {
    while (flag == 0) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
    flag = 0;
    check(arrived(i * PIECE, PIECE), "Test says true once the data is here");
  }
  check(all_null(PIECES, requests), "Test frees the request");
}

static void wait_for_all(void) {
  MPI_Request requests[PIECES];
  MPI_Status statuses[PIECES];
  int flag = 0;
  get_pieces(requests);
  check(MPI_Waitall(PIECES, requests, statuses) == MPI_SUCCESS && arrived(0, ELEMENTS),
        "Waitall returns with the data");
  check(all_null(PIECES, requests), "Waitall frees the requests");
  get_pieces(requests);
  while (flag == 0) MPI_Testall(PIECES, requests, &flag, no_statuses);
  check(arrived(0, ELEMENTS) && all_null(PIECES, requests), "Testall completes all");
}

static void wait_for_any(int testing) {
  MPI_Request requests[PIECES];
  get_pieces(requests);
  for (int done = 0; done < PIECES; ++done) {
    int index = -1, flag = 0;
    MPI_Status status;
    if (testing) {
      while (flag == 0) MPI_Testany(PIECES, requests, &index, &flag, &status);
    } else {
      MPI_Waitany(PIECES, requests, &index, &status);
    }
    check(index >= 0 && index < PIECES && requests[index] == MPI_REQUEST_NULL && arrived(index * PIECE, PIECE),
          testing ? "Testany names a request whose data is here" : "Waitany names a request whose data is here");
  }
  int index = 0, flag = 0;
  if (testing) {
    MPI_Testany(PIECES, requests, &index, &flag, MPI_STATUS_IGNORE);
    check(flag == 1 && index == MPI_UNDEFINED, "Testany of none is true and undefined");
  } else {
    MPI_Waitany(PIECES, requests, &index, MPI_STATUS_IGNORE);
    check(index == MPI_UNDEFINED, "Waitany of none is undefined");
  }
}

static void wait_for_some(int testing) {
  MPI_Request requests[PIECES];
  MPI_Status statuses[PIECES];
  int indices[PIECES], left = PIECES, done = 0;
  get_pieces(requests);
  while (left > 0) {
    if (testing) {
      MPI_Testsome(PIECES, requests, &done, indices, statuses);
    } else {
      MPI_Waitsome(PIECES, requests, &done, indices, statuses);
      check(done > 0, "Waitsome completes at least one");
    }
    for (int i = 0; i < done; ++i) {
      check(requests[indices[i]] == MPI_REQUEST_NULL && arrived(indices[i] * PIECE, PIECE),
            "Waitsome and Testsome tell the truth");
    }
    left -= done;
  }
  if (testing) {
    MPI_Testsome(PIECES, requests, &done, indices, statuses);
  } else {
    MPI_Waitsome(PIECES, requests, &done, indices, statuses);
  }
  check(done == MPI_UNDEFINED, "some of none is undefined");
}

static void look_at_status(void) {
  MPI_Request requests[PIECES];
  get_pieces(requests);
  for (int i = 0; i < PIECES; ++i) {
    int flag = 0;
    MPI_Status status;
    while (flag == 0) MPI_Request_get_status(requests[i], &flag, &status);
    check(requests[i] != MPI_REQUEST_NULL && arrived(i * PIECE, PIECE), "Request_get_status leaves the request");
  }
  check(MPI_Waitall(PIECES, requests, no_statuses) == MPI_SUCCESS, "what is complete can still be waited for");
}

/* Each rank sends the other a message before it waits for message and get in one call: neither may be waited for first.
 */
static void mixed(int tag, int how) {
  MPI_Request requests[3];
  int in = -1, out = rank, indices[3], done = 0, left = 3;
  clear();
  MPI_Irecv(&in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[0]);
  MPI_Rget(result, ELEMENTS, MPI_INT, peer, 0, ELEMENTS, MPI_INT, window, &requests[1]);
  requests[2] = MPI_REQUEST_NULL;
  if (how == 0) {
    MPI_Isend(&out, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, no_statuses);
  } else if (how == 1) {
    /* The message is sent only after the get has come: Waitany must give it although the receive is open. */
    int index = -1;
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    check(index == 1, "Waitany returns the get while the receive is open");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&out, 1, MPI_INT, peer, tag, MPI_COMM_WORLD);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    check(index == 0, "Waitany then returns the receive");
  } else {
    MPI_Isend(&out, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[2]);
    while (left > 0) {
      MPI_Waitsome(3, requests, &done, indices, no_statuses);
      left -= done;
    }
  }
  check(in == peer && arrived(0, ELEMENTS) && all_null(3, requests), "message and get both arrive");
}

static void freed_early(void) {
  MPI_Request requests[PIECES];
  for (int round = 0; round < 20; ++round) {
    get_pieces(requests);
    for (int i = 0; i < PIECES; ++i) MPI_Request_free(&requests[i]);
    check(all_null(PIECES, requests), "Request_free takes a request that is not complete");
    MPI_Win_flush(peer, window);
    check(arrived(0, ELEMENTS), "flush completes what was freed early");
  }
}

static void true_after_flush(void) {
  MPI_Request requests[PIECES];
  int flag = 0;
  get_pieces(requests);
  MPI_Win_flush_local(peer, window);
  MPI_Testall(PIECES, requests, &flag, no_statuses);
  check(flag == 1, "a request tests true after a flush");
  get_pieces(requests);
  MPI_Win_unlock_all(window);
  flag = 0;
  MPI_Testall(PIECES, requests, &flag, no_statuses);
  check(flag == 1 && arrived(0, ELEMENTS), "a request tests true after the epoch");
  MPI_Win_lock_all(0, window);
}

static void complete_at_once(void) {
  MPI_Request requests[3];
  MPI_Status status;
  int flag = 0, value = 1;
  MPI_Rput(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window, &requests[0]);
  MPI_Rget(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window, &requests[1]);
  MPI_Raccumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, window, &requests[2]);
  MPI_Request_get_status(requests[0], &flag, &status);
  check(flag == 1, "a request to nobody is complete");
  check(MPI_Wait(&requests[0], &status) == MPI_SUCCESS, "Wait takes a request to nobody");
  flag = 0;
  check(MPI_Test(&requests[1], &flag, &status) == MPI_SUCCESS && flag == 1, "Test takes a request to nobody");
  MPI_Request_free(&requests[2]);
  check(all_null(3, requests), "requests to nobody are freed");
}

static void put_and_sum(void) {
  int* ones = malloc(ELEMENTS * sizeof(int));
  MPI_Request requests[2];
  for (int i = 0; i < ELEMENTS; ++i) ones[i] = 1;
  MPI_Raccumulate(ones, ELEMENTS, MPI_INT, peer, 0, ELEMENTS, MPI_INT, MPI_SUM, window, &requests[0]);
  MPI_Rget_accumulate(ones, ELEMENTS, MPI_INT, result, ELEMENTS, MPI_INT, peer, 0, ELEMENTS, MPI_INT, MPI_SUM, window,
                      &requests[1]);
  MPI_Waitall(2, requests, no_statuses);
  int good = 1;
  for (int i = 0; i < ELEMENTS; ++i) good &= result[i] == peer * 1000003 + i + 1;
  check(good, "Rget_accumulate sees the Raccumulate before it");
  for (int i = 0; i < ELEMENTS; ++i) ones[i] = peer * 1000003 + i;
  MPI_Rput(ones, ELEMENTS, MPI_INT, peer, 0, ELEMENTS, MPI_INT, window, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  free(ones);
  MPI_Win_flush(peer, window);
}

/* The window goes before its requests are waited for; handles of later requests may be the same. */
static void outlives_window(MPI_Request requests[PIECES]) {
  get_pieces(requests);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  int flag = 0;
  MPI_Testall(PIECES, requests, &flag, no_statuses);
  check(flag == 1 && arrived(0, ELEMENTS), "a request outlives its window");
}

static void* wait_in_thread(void* half) {
  const int first = *(const int*)half;
  MPI_Request requests[2];
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 2; ++i) {
      const int start = first + i * PIECE;
      MPI_Rget(result + start, PIECE, MPI_INT, peer, start, PIECE, MPI_INT, window, &requests[i]);
    }
    MPI_Waitall(2, requests, no_statuses);
    if (!arrived(first, 2 * PIECE)) return half;
    memset(result + first, 0xff, 2 * PIECE * sizeof(int));
  }
  return NULL;
}

static void wait_in_two_threads(void) {
  int halves[2] = {0, 2 * PIECE};
  void* bad[2];
  pthread_t other;
  pthread_create(&other, NULL, wait_in_thread, &halves[1]);
  bad[0] = wait_in_thread(&halves[0]);
  pthread_join(other, &bad[1]);
  check(bad[0] == NULL && bad[1] == NULL, "two threads wait for requests of their own");
}

static void make_window(void) {
  MPI_Win_create(memory, ELEMENTS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_lock_all(0, window);
}

int main(int argc, char** argv) {
  int provided = 0;
  setenv("FARSUM_PATH", "owner", 0); /* so that requests are not complete at once */
  no_statuses = MPI_STATUSES_IGNORE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  rank = my_rank(MPI_COMM_WORLD);
  peer = rank ^ 1;
  if (ranks_of(MPI_COMM_WORLD) % 2 != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  memory = malloc(ELEMENTS * sizeof(int));
  result = malloc(ELEMENTS * sizeof(int));
  for (int i = 0; i < ELEMENTS; ++i) memory[i] = rank * 1000003 + i;
  make_window();
  MPI_Request requests[PIECES];
  for (int round = 0; round < 10; ++round) {
    wait_and_test_one();
    wait_for_all();
    wait_for_any(0);
    wait_for_any(1);
    wait_for_some(0);
    wait_for_some(1);
    look_at_status();
    for (int how = 0; how < 3; ++how) mixed(3 * round + how, how);
    true_after_flush();
    complete_at_once();
    MPI_Barrier(MPI_COMM_WORLD);
    put_and_sum();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  freed_early();
  if (provided == MPI_THREAD_MULTIPLE) wait_in_two_threads();
  outlives_window(requests);
  make_window();
  get_pieces(requests);
  MPI_Request_free(&requests[0]);
  /* Requests and window are left to MPI_Finalize. */
  MPI_Win_unlock_all(window);
  return finish();
}
