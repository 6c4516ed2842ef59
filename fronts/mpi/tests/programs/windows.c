/* Every flavour of window: its attributes, group, info, name, and that making and freeing many leaves nothing behind.
 * RANKS: 1 2 */
#include "check.h"

enum { count = 1000 };

static void check_attributes(MPI_Win win, void* base, MPI_Aint bytes, int unit, int flavor) {
  void* value = NULL;
  int flag = 0;
  CALL(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
  CHECK(flag && value == base, "base is %p, not %p", value, base);
  MPI_Aint* size = NULL;
  CALL(MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &flag));
  CHECK(flag && *size == bytes, "size is %ld", (long)*size);
  int* word = NULL;
  CALL(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &word, &flag));
  CHECK(flag && *word == unit, "unit is %d", *word);
  CALL(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &word, &flag));
  CHECK(flag && *word == flavor, "flavour is %d", *word);
  CALL(MPI_Win_get_attr(win, MPI_WIN_MODEL, &word, &flag));
  CHECK(flag && *word == MPI_WIN_UNIFIED, "model is %d", *word);
}

static void check_objects(MPI_Win win) {
  MPI_Group mine, world;
  int result = 0;
  CALL(MPI_Win_get_group(win, &mine));
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_compare(mine, world, &result);
  CHECK(result == MPI_IDENT, "the group is another");
  MPI_Group_free(&mine);
  MPI_Group_free(&world);
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  CALL(MPI_Win_set_name(win, "counter"));
  CALL(MPI_Win_get_name(win, name, &length));
  CHECK(strcmp(name, "counter") == 0, "the name is '%s'", name);
#ifndef MPI_ABI_VERSION /* its header leaves Fortran handles out */
  CHECK(MPI_Win_f2c(MPI_Win_c2f(win)) == win, "c2f and f2c differ");
#endif
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0;
  CALL(MPI_Win_get_info(win, &info));
  MPI_Info_get(info, "accumulate_ordering", MPI_MAX_INFO_VAL, value, &flag);
  CHECK(flag && strcmp(value, "rar,raw,war,waw") == 0, "the ordering is '%s'", value);
  MPI_Info_free(&info);
}

/* Each rank adds its number, plus one, to each element of its right neighbour. */
static void check_sum(MPI_Win win, const double* mine, MPI_Aint unit_elements) {
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  double operand[count];
  for (int i = 0; i < count; ++i) operand[i] = rank + 1;
  CALL(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
  CALL(MPI_Accumulate(operand, count, MPI_DOUBLE, (rank + 1) % size, unit_elements, count, MPI_DOUBLE, MPI_SUM, win));
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  const int left = (rank + size - 1) % size;
  for (int i = 0; i < count; ++i) CHECK(mine[i] == left + 1, "element %d is %g", i, mine[i]);
}

static void created(void) {
  double* memory = calloc(count, sizeof *memory);
  MPI_Win win;
  CALL(MPI_Win_create(memory, count * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  check_attributes(win, memory, count * sizeof *memory, sizeof *memory, MPI_WIN_FLAVOR_CREATE);
  check_objects(win);
  check_sum(win, memory, 0);
  CALL(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL, "the handle is still set");
  free(memory);
}

static void allocated(void) {
  double* memory = NULL;
  MPI_Win win;
  CALL(MPI_Win_allocate(count * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  for (int i = 0; i < count; ++i) memory[i] = 0;
  check_attributes(win, memory, count * sizeof *memory, sizeof *memory, MPI_WIN_FLAVOR_ALLOCATE);
  check_objects(win);
  MPI_Barrier(MPI_COMM_WORLD);
  check_sum(win, memory, 0);
  CALL(MPI_Win_free(&win));
}

static void shared(void) {
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  char* memory = NULL;
  MPI_Win win;
  const MPI_Aint bytes = 13 + rank; /* contiguous whatever the sizes */
  CALL(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  check_attributes(win, memory, bytes, 1, MPI_WIN_FLAVOR_SHARED);
  memset(memory, rank + 1, (size_t)bytes);
  CALL(MPI_Win_fence(0, win));
  char* first = NULL;
  MPI_Aint size_of = 0;
  int unit = 0;
  CALL(MPI_Win_shared_query(win, MPI_PROC_NULL, &size_of, &unit, &first));
  char* expected = first;
  for (int other = 0; other < size; ++other) {
    char* part = NULL;
    CALL(MPI_Win_shared_query(win, other, &size_of, &unit, &part));
    CHECK(part == expected && size_of == 13 + other && unit == 1, "part %d is at %p, not %p", other, (void*)part,
          (void*)expected);
    CHECK(part[0] == other + 1 && part[size_of - 1] == other + 1, "part %d holds %d", other, part[0]);
    expected = part + size_of;
  }
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Win_free(&win));
}

static void dynamic(void) {
  const int rank = my_rank(MPI_COMM_WORLD), size = ranks_of(MPI_COMM_WORLD);
  double* memory = calloc(count, sizeof *memory);
  MPI_Win win;
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  check_attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
  CALL(MPI_Win_attach(win, memory, count * sizeof *memory));
  MPI_Aint mine = 0, theirs = 0;
  MPI_Get_address(memory, &mine);
  MPI_Sendrecv(&mine, 1, MPI_AINT, (rank + size - 1) % size, 0, &theirs, 1, MPI_AINT, (rank + 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check_sum(win, memory, theirs);
  CALL(MPI_Win_detach(win, memory));
  CALL(MPI_Win_free(&win));
  free(memory);
}

static void empty(void) {
  const int size = ranks_of(MPI_COMM_WORLD);
  MPI_Win win;
  CALL(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Put(NULL, 0, MPI_INT, size - 1, 0, 0, MPI_INT, win)); /* no bytes at the end of the part */
  CALL(MPI_Put(NULL, 5, MPI_INT, MPI_PROC_NULL, 0, 5, MPI_INT, win));
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Win_free(&win));
}

static long resident_kib(void) {
  long kib = 0;
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  }
  if (status != NULL) fclose(status);
  return kib;
}

/* As many windows again as before must not take memory again. */
static void many(void) {
  long before = 0;
  for (int i = 0; i < 10000; ++i) {
    MPI_Win win;
    void* memory = NULL;
    CALL(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    CALL(MPI_Win_free(&win));
    if (i == 4999) before = resident_kib();
  }
  const long grown = resident_kib() - before;
  CHECK(grown < 2048, "5000 windows made and freed took %ld KiB", grown);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  created();
  allocated();
  shared();
  dynamic();
  empty();
  many();
  return finish();
}
