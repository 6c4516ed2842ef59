/* RANKS: 2 4
 * An operation without data succeeds wherever it points, in every kind of epoch and on every flavour of window, moves
 * nothing, and is still refused outside an epoch or for a rank that is none. */
#include "check.h"

enum { words = 8 };

static int class_of(int code) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  return error_class;
}
#define EXPECT(expected, expression)                                                    \
  do {                                                                                  \
    const int error_class = class_of(expression);                                       \
    CHECK(error_class == (expected), "class %d, not %d", error_class, (int)(expected)); \
  } while (0)

/* Types without data: predefined ones of count 0 are the callers'. */
enum { shapes = 5 };
static MPI_Datatype shape[shapes];

static void make_shapes(void) {
  const int none = 0;
  const int no_lengths[2] = {0, 0};
  const int places[2] = {700, 300};
  MPI_Type_contiguous(0, MPI_LONG, &shape[0]);
  MPI_Type_vector(0, 3, 1000, MPI_DOUBLE, &shape[1]);
  MPI_Type_indexed(2, no_lengths, places, MPI_INT, &shape[2]);
  MPI_Type_create_struct(0, &none, NULL, NULL, &shape[3]);
  MPI_Type_create_hvector(4, 0, -4096, MPI_SHORT, &shape[4]);
  for (int i = 0; i < shapes; ++i) MPI_Type_commit(&shape[i]);
}

/* What may be refused as any operation may: `expected` is the class. */
static void plain_calls(int expected, int target, MPI_Aint disp, MPI_Win win) {
  long v = 1, back = 2;
  EXPECT(expected, MPI_Put(&v, 0, MPI_LONG, target, disp, 0, MPI_LONG, win));
  EXPECT(expected, MPI_Put(NULL, 0, MPI_DOUBLE_INT, target, disp, 0, MPI_DOUBLE_INT, win));
  EXPECT(expected, MPI_Get(&v, 0, MPI_LONG, target, disp, 0, MPI_LONG, win));
  EXPECT(expected, MPI_Accumulate(&v, 0, MPI_LONG, target, disp, 0, MPI_LONG, MPI_SUM, win));
  EXPECT(expected, MPI_Get_accumulate(&v, 0, MPI_LONG, &back, 0, MPI_LONG, target, disp, 0, MPI_LONG, MPI_SUM, win));
  EXPECT(expected,
         MPI_Get_accumulate(NULL, 0, MPI_LONG, &back, 0, MPI_LONG, target, disp, 0, MPI_LONG, MPI_NO_OP, win));
  for (int i = 0; i < shapes; ++i) {
    EXPECT(expected, MPI_Put(&v, 3, shape[i], target, disp, 0, MPI_LONG, win));
    EXPECT(expected, MPI_Get(&v, 0, MPI_INT, target, disp, 5, shape[i], win));
    EXPECT(expected, MPI_Accumulate(&v, 2, shape[i], target, disp, 2, shape[i], MPI_SUM, win));
    EXPECT(expected, MPI_Get_accumulate(&v, 1, shape[i], &back, 1, shape[i], target, disp, 1, shape[i], MPI_MAX, win));
  }
  CHECK(v == 1 && back == 2, "%ld and %ld are left of 1 and 2", v, back);
}

static void request_calls(int target, MPI_Aint disp, MPI_Win win) {
  long v = 1, back = 2;
  MPI_Request requests[5];
  CALL(MPI_Rput(&v, 0, MPI_LONG, target, disp, 0, MPI_LONG, win, &requests[0]));
  CALL(MPI_Rget(&v, 4, shape[0], target, disp, 0, MPI_LONG, win, &requests[1]));
  CALL(MPI_Raccumulate(&v, 0, MPI_LONG, target, disp, 0, MPI_LONG, MPI_SUM, win, &requests[2]));
  CALL(MPI_Raccumulate(&v, 1, shape[3], target, disp, 1, shape[3], MPI_SUM, win, &requests[3]));
  CALL(MPI_Rget_accumulate(&v, 0, MPI_INT, &back, 0, MPI_INT, target, disp, 0, MPI_INT, MPI_SUM, win, &requests[4]));
  MPI_Status statuses[5];
  CALL(MPI_Waitall(5, requests, statuses));
  CHECK(v == 1 && back == 2, "%ld and %ld are left of 1 and 2", v, back);
}

static void in_every_epoch(MPI_Win win) {
  const int size = ranks_of(MPI_COMM_WORLD);
  /* The last is where the byte of the displacement is not even a number of 64 bits. */
  const MPI_Aint disps[] = {0, words, words + 1, 1000, (MPI_Aint)1 << 40, (MPI_Aint)1 << 61};
  const int count = (int)(sizeof disps / sizeof disps[0]);
  MPI_Group all;
  MPI_Win_get_group(win, &all);
  for (int target = 0; target < size; ++target) {
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Put(NULL, 0, MPI_LONG, target, 1000, 0, MPI_LONG, win));
    plain_calls(MPI_ERR_RMA_SYNC, target, 1000, win);
    MPI_Barrier(MPI_COMM_WORLD);
    CALL(MPI_Win_fence(0, win));
    for (int i = 0; i < count; ++i) plain_calls(MPI_SUCCESS, target, disps[i], win);
    CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CALL(MPI_Win_post(all, 0, win));
    CALL(MPI_Win_start(all, 0, win));
    for (int i = 0; i < count; ++i) plain_calls(MPI_SUCCESS, target, disps[i], win);
    CALL(MPI_Win_complete(win));
    CALL(MPI_Win_wait(win));
    CALL(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    for (int i = 0; i < count; ++i) plain_calls(MPI_SUCCESS, target, disps[i], win);
    for (int i = 0; i < count; ++i) request_calls(target, disps[i], win);
    CALL(MPI_Win_unlock(target, win));
    CALL(MPI_Win_lock_all(0, win));
    for (int i = 0; i < count; ++i) plain_calls(MPI_SUCCESS, target, disps[i], win);
    for (int i = 0; i < count; ++i) request_calls(target, disps[i], win);
    EXPECT(MPI_ERR_RANK, MPI_Put(NULL, 0, MPI_LONG, size, 1000, 0, MPI_LONG, win));
    EXPECT(MPI_ERR_TYPE, MPI_Put(NULL, 0, MPI_DATATYPE_NULL, target, 1000, 0, MPI_LONG, win));
    EXPECT(MPI_ERR_COUNT, MPI_Put(NULL, -1, MPI_LONG, target, 1000, 0, MPI_LONG, win));
    EXPECT(MPI_ERR_OP, MPI_Accumulate(NULL, 0, MPI_LONG, target, 1000, 0, MPI_LONG, MPI_OP_NULL, win));
    CALL(MPI_Win_unlock_all(win));
  }
  MPI_Group_free(&all);
}

static void untouched(const long* memory, int count, const char* what) {
  for (int i = 0; i < count; ++i) CHECK(memory[i] == 4711, "word %d of the %s part is %ld", i, what, memory[i]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int mine = my_rank(MPI_COMM_WORLD) == 0 ? 0 : words; /* the part of rank 0 is empty */
  MPI_Win win;
  long* memory = NULL;
  long own[words];
  make_shapes();
  CALL(MPI_Win_allocate(mine * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  for (int i = 0; i < mine; ++i) memory[i] = 4711;
  in_every_epoch(win);
  untouched(memory, mine, "allocated");
  CALL(MPI_Win_free(&win));
  for (int i = 0; i < words; ++i) own[i] = 4711;
  CALL(MPI_Win_create(own, mine * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  in_every_epoch(win);
  untouched(own, words, "created");
  CALL(MPI_Win_free(&win));
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win)); /* of which no byte is attached */
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  in_every_epoch(win);
  CALL(MPI_Win_free(&win));
  for (int i = 0; i < shapes; ++i) MPI_Type_free(&shape[i]);
  return finish();
}
