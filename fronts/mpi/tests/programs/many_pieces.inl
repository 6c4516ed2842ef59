/* Types of very many irregular pieces at the target, at the origin and for the result, in each kind of call and over
 * memory of several kinds: every item goes where the type maps say, and nothing else is touched. */
#include <sys/mman.h>

#include "check.h"

enum { items = 30000, slot = 4, room = items * slot, kinds = 4 };

static const char* const flavors[] = {"allocated", "created", "created over a shared mapping", "dynamic"};
static const char* const calls[] = {"put", "get", "accumulate", "get_accumulate"};

/* Items as a type, and where each of them lies. */
struct side {
  MPI_Datatype type;
  int count;
  int at[items];
};

static unsigned long drawn = 1;
static int draw(int below) {
  drawn = drawn * 6364136223846793005ul + 1442695040888963407ul;
  return (int)((drawn >> 33) % (unsigned long)below);
}

/* One to three items in a row, in slots of four that come in no order. */
static void make_irregular(struct side* side) {
  static int lengths[items], places[items], slots[items];
  for (int i = 0; i < items; ++i) slots[i] = i;
  for (int i = items - 1; i > 0; --i) {
    const int j = draw(i + 1), other = slots[i];
    slots[i] = slots[j];
    slots[j] = other;
  }
  int pieces = 0;
  for (int item = 0; item < items; ++pieces) {
    lengths[pieces] = 1 + draw(3);
    if (lengths[pieces] > items - item) lengths[pieces] = items - item;
    places[pieces] = slots[pieces] * slot + draw(slot - lengths[pieces] + 1);
    for (int i = 0; i < lengths[pieces]; ++i) side->at[item++] = places[pieces] + i;
  }
  CALL(MPI_Type_indexed(pieces, lengths, places, MPI_LONG, &side->type));
  CALL(MPI_Type_commit(&side->type));
  side->count = 1;
}

static void make_plain(struct side* side) {
  side->type = MPI_LONG;
  side->count = items;
  for (int i = 0; i < items; ++i) side->at[i] = i;
}

static long part[room], origin[room], result[room];

static long at_first(int place) { return 5 * (long)place + 2; }

/* One call, from the memory as it is at first to what each place must hold then. */
static void check_call(MPI_Win win, MPI_Aint base, int target, int kind, const struct side* there,
                       const struct side* here, const struct side* back) {
  for (int i = 0; i < room; ++i) {
    part[i] = at_first(i);
    origin[i] = 1000000 + i;
    result[i] = -1;
  }
  CALL(MPI_Put(part, room, MPI_LONG, target, base, room, MPI_LONG, win));
  CALL(MPI_Win_flush(target, win));
  if (kind == 0) CALL(MPI_Put(origin, here->count, here->type, target, base, there->count, there->type, win));
  if (kind == 1) CALL(MPI_Get(result, back->count, back->type, target, base, there->count, there->type, win));
  if (kind == 2)
    CALL(MPI_Accumulate(origin, here->count, here->type, target, base, there->count, there->type, MPI_SUM, win));
  if (kind == 3)
    CALL(MPI_Get_accumulate(origin, here->count, here->type, result, back->count, back->type, target, base,
                            there->count, there->type, MPI_SUM, win));
  CALL(MPI_Win_flush(target, win));
  for (int i = 0; i < items; ++i) {
    const long given = origin[here->at[i]];
    if (kind != 1) part[there->at[i]] = (kind == 0 ? 0 : part[there->at[i]]) + given;
  }
  static long found[room], returned[room];
  CALL(MPI_Get(found, room, MPI_LONG, target, base, room, MPI_LONG, win));
  CALL(MPI_Win_flush(target, win));
  int wrong = 0;
  for (int i = 0; i < room; ++i) wrong += found[i] != part[i];
  CHECK(wrong == 0, "%s: %d places at the target", calls[kind], wrong);
  for (int i = 0; i < room; ++i) returned[i] = -1;
  for (int i = 0; i < items && kind % 2 == 1; ++i) returned[back->at[i]] = at_first(there->at[i]);
  wrong = memcmp(result, returned, sizeof result) != 0;
  CHECK(wrong == 0, "%s: the result", calls[kind]);
}

static MPI_Win make_window(int flavor, long** memory, MPI_Aint* base) {
  const MPI_Aint bytes = room * (MPI_Aint)sizeof(long);
  MPI_Win win = MPI_WIN_NULL;
  *base = 0;
  *memory = NULL;
  if (flavor == 0) {
    CALL(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win));
    return win;
  }
  if (flavor == 2)
    *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  else
    *memory = malloc((size_t)bytes);
  if (flavor != 3) {
    CALL(MPI_Win_create(*memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    return win;
  }
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CALL(MPI_Win_attach(win, *memory, bytes));
  MPI_Aint mine = 0;
  CALL(MPI_Get_address(*memory, &mine));
  const int next = (my_rank(MPI_COMM_WORLD) + 1) % ranks_of(MPI_COMM_WORLD);
  const int previous = (my_rank(MPI_COMM_WORLD) + ranks_of(MPI_COMM_WORLD) - 1) % ranks_of(MPI_COMM_WORLD);
  CALL(MPI_Sendrecv(&mine, 1, MPI_AINT, previous, 0, base, 1, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  return win;
}

static void free_window(int flavor, MPI_Win win, long* memory) {
  if (flavor == 3) CALL(MPI_Win_detach(win, memory));
  CALL(MPI_Win_free(&win));
  if (flavor == 1 || flavor == 3) free(memory);
  if (flavor == 2) munmap(memory, room * sizeof(long));
}

static struct side sides[4];

int main(int argc, char** argv) {
  if (forced_path[0] != '\0') setenv("FARSUM_PATH", forced_path, 1);
  MPI_Init(&argc, &argv);
  make_plain(&sides[0]);
  for (int i = 1; i < 4; ++i) make_irregular(&sides[i]);
  const int target = (my_rank(MPI_COMM_WORLD) + 1) % ranks_of(MPI_COMM_WORLD);
  for (int flavor = 0; flavor < 4; ++flavor) {
    long* memory = NULL;
    MPI_Aint base = 0;
    MPI_Win win = make_window(flavor, &memory, &base);
    const int before = failures;
    CALL(MPI_Win_lock_all(0, win));
    for (int kind = 0; kind < kinds; ++kind) {
      check_call(win, base, target, kind, &sides[1], &sides[0], &sides[0]);
      check_call(win, base, target, kind, &sides[0], &sides[2], &sides[3]);
      check_call(win, base, target, kind, &sides[1], &sides[2], &sides[3]);
    }
    CALL(MPI_Win_unlock_all(win));
    CHECK(failures == before, "in memory that is %s", flavors[flavor]);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody reaches for this rank's memory any more */
    free_window(flavor, win, memory);
  }
  for (int i = 1; i < 4; ++i) CALL(MPI_Type_free(&sides[i].type));
  return finish();
}
