/* Every predefined operator on every predefined type that it is defined for gives what MPI_Reduce_local gives. */
#include "check.h"

enum { room = 32 * 33, most = 33 };

struct named_type {
  const char* name;
  MPI_Datatype type;
};
struct named_op {
  const char* name;
  MPI_Op op;
};
#define NAMED(handle) \
  { #handle, handle }

/* Small positive numbers in any type, by converting from C's own; pairs get a value and an index. */
static void fill(void* buffer, MPI_Datatype type, int seed) {
  memset(buffer, 0, room);
#define AS(c_type, mpi_type)                                                            \
  if (type == mpi_type) {                                                               \
    for (int i = 0; i < most; ++i) ((c_type*)buffer)[i] = (c_type)((i * 7 + seed) % 5); \
    return;                                                                             \
  }
  AS(float, MPI_FLOAT);
  AS(double, MPI_DOUBLE);
  AS(long double, MPI_LONG_DOUBLE);
  AS(float _Complex, MPI_C_FLOAT_COMPLEX);
  AS(double _Complex, MPI_C_DOUBLE_COMPLEX);
  AS(short, MPI_SHORT);
  AS(unsigned short, MPI_UNSIGNED_SHORT);
  AS(int, MPI_INT);
  AS(unsigned, MPI_UNSIGNED);
  AS(long, MPI_LONG);
  AS(unsigned long, MPI_UNSIGNED_LONG);
  AS(long long, MPI_LONG_LONG);
  AS(MPI_Aint, MPI_AINT);
  AS(MPI_Offset, MPI_OFFSET);
  AS(MPI_Count, MPI_COUNT);
  AS(_Bool, MPI_C_BOOL);
#define AS_PAIR(value_type, mpi_type)                    \
  if (type == mpi_type) {                                \
    struct pair {                                        \
      value_type value;                                  \
      int index;                                         \
    }* pairs = buffer;                                   \
    for (int i = 0; i < most; ++i) {                     \
      pairs[i].value = (value_type)((i * 7 + seed) % 5); \
      pairs[i].index = (i + seed) % 3;                   \
    }                                                    \
    return;                                              \
  }
  AS_PAIR(float, MPI_FLOAT_INT);
  AS_PAIR(double, MPI_DOUBLE_INT);
  AS_PAIR(long, MPI_LONG_INT);
  AS_PAIR(int, MPI_2INT);
  AS_PAIR(short, MPI_SHORT_INT);
  AS_PAIR(long double, MPI_LONG_DOUBLE_INT);
  for (int i = 0; i < most; ++i) ((unsigned char*)buffer)[i] = (unsigned char)((i * 7 + seed) % 5);
}

/* How long a number is, and where a pair's index begins: 0 where the type has no gaps, or is no pair. */
static void parts_of(MPI_Datatype type, size_t* number, size_t* index) {
  *number = *index = 0;
  if (type == MPI_DOUBLE_INT) *number = sizeof(double), *index = 8;
  if (type == MPI_LONG_INT) *number = *index = sizeof(long);
  if (type == MPI_SHORT_INT) *number = sizeof(short), *index = 4;
  if (type == MPI_LONG_DOUBLE) *number = 10;
  if (type == MPI_LONG_DOUBLE_INT) *number = 10, *index = sizeof(long double);
}

/* Bytes that belong to no value may differ: a long double has 10 of its 16, and pairs have gaps. */
static int same(const char* a, const char* b, int n, MPI_Aint extent, MPI_Datatype type) {
  size_t number = 0, index = 0;
  parts_of(type, &number, &index);
  if (number == 0) return memcmp(a, b, (size_t)(n * extent)) == 0;
  for (int i = 0; i < n; ++i) {
    if (memcmp(a + i * extent, b + i * extent, number) != 0) return 0;
    if (index != 0 && memcmp(a + i * extent + index, b + i * extent + index, sizeof(int)) != 0) return 0;
  }
  return 1;
}

static void one(MPI_Win win, char* mine, const struct named_type* type, const struct named_op* op) {
  static char operand[room], expected[room], fetched[room], before[room];
  const int right = (my_rank(MPI_COMM_WORLD) + 1) % ranks_of(MPI_COMM_WORLD);
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type->type, &lower, &extent);
  const int n = (int)(room / extent) < most ? (int)(room / extent) : most;
  fill(operand, type->type, 1);
  fill(before, type->type, 2);
  memcpy(expected, before, room);
  if (op->op == MPI_REPLACE) {
    memcpy(expected, operand, (size_t)(n * extent));
  } else if (op->op != MPI_NO_OP && MPI_Reduce_local(operand, expected, n, type->type, op->op) != MPI_SUCCESS) {
    return; /* not defined in this library */
  }
  memcpy(mine, before, room);
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Get_accumulate(operand, n, type->type, fetched, n, type->type, right, 0, n, type->type, op->op, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(same(mine, expected, n, extent, type->type), "%s of %s", op->name, type->name);
  CHECK(same(fetched, before, n, extent, type->type), "fetched with %s of %s", op->name, type->name);
  memcpy(mine, before, room);
  CALL(MPI_Win_fence(0, win));
  if (op->op != MPI_NO_OP) {
    CALL(MPI_Accumulate(operand, n, type->type, right, 0, n, type->type, op->op, win));
  } else {
    CALL(MPI_Fetch_and_op(NULL, fetched, type->type, right, 0, MPI_NO_OP, win));
  }
  CALL(MPI_Win_fence(0, win));
  CHECK(same(mine, expected, n, extent, type->type), "accumulated %s of %s", op->name, type->name);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct named_type integers[] = {NAMED(MPI_SIGNED_CHAR),    NAMED(MPI_UNSIGNED_CHAR), NAMED(MPI_SHORT),
                                        NAMED(MPI_UNSIGNED_SHORT), NAMED(MPI_INT),           NAMED(MPI_UNSIGNED),
                                        NAMED(MPI_LONG),           NAMED(MPI_UNSIGNED_LONG), NAMED(MPI_LONG_LONG),
                                        NAMED(MPI_INT8_T),         NAMED(MPI_UINT16_T),      NAMED(MPI_AINT),
                                        NAMED(MPI_OFFSET),         NAMED(MPI_COUNT)};
  const struct named_type floats[] = {NAMED(MPI_FLOAT), NAMED(MPI_DOUBLE), NAMED(MPI_LONG_DOUBLE)};
  const struct named_type complexes[] = {NAMED(MPI_C_FLOAT_COMPLEX), NAMED(MPI_C_DOUBLE_COMPLEX)};
  const struct named_type logicals[] = {NAMED(MPI_C_BOOL), NAMED(MPI_INT), NAMED(MPI_LONG)};
  const struct named_type pairs[] = {NAMED(MPI_FLOAT_INT), NAMED(MPI_DOUBLE_INT), NAMED(MPI_LONG_INT),
                                     NAMED(MPI_2INT),      NAMED(MPI_SHORT_INT),  NAMED(MPI_LONG_DOUBLE_INT)};
  const struct named_type moved[] = {NAMED(MPI_BYTE), NAMED(MPI_CHAR), NAMED(MPI_WCHAR), NAMED(MPI_DOUBLE),
                                     NAMED(MPI_2INT)};
  const struct named_op sums[] = {NAMED(MPI_SUM), NAMED(MPI_PROD)};
  const struct named_op orders[] = {NAMED(MPI_MIN), NAMED(MPI_MAX)};
  const struct named_op bits[] = {NAMED(MPI_BAND), NAMED(MPI_BOR), NAMED(MPI_BXOR)};
  const struct named_op truths[] = {NAMED(MPI_LAND), NAMED(MPI_LOR), NAMED(MPI_LXOR)};
  const struct named_op places[] = {NAMED(MPI_MINLOC), NAMED(MPI_MAXLOC)};
  const struct named_op moves[] = {NAMED(MPI_REPLACE), NAMED(MPI_NO_OP)};
  char* mine = NULL;
  MPI_Win win;
  CALL(MPI_Win_allocate(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
  CALL(MPI_Win_fence(0, win));
#define EACH(types, ops)                                       \
  for (size_t t = 0; t < sizeof(types) / sizeof *(types); ++t) \
    for (size_t o = 0; o < sizeof(ops) / sizeof *(ops); ++o) one(win, mine, &(types)[t], &(ops)[o])
  EACH(integers, sums);
  EACH(integers, orders);
  EACH(integers, bits);
  EACH(floats, sums);
  EACH(floats, orders);
  EACH(complexes, sums);
  EACH(logicals, truths);
  EACH(pairs, places);
  EACH(moved, moves);
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CALL(MPI_Win_free(&win));
  return finish();
}
