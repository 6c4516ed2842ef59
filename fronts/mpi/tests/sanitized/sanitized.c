/* A program that a sanitizer watches: windows over memory of every kind, each beside what the sanitizer keeps for
 * itself, made and freed again and again; a thread beside them; a child, which inherits nothing of Farsum's. With the
 * argument `faulty` it ends in an error that AddressSanitizer must still find.
 */
#include <pthread.h>

#include "../programs/check.h"

enum { rounds = 20, words = 100, many = 1 << 16 };

static long before[words];
static long global[words];
static long behind[words];

static MPI_Win window_over(long* memory, size_t count) {
  MPI_Win window = MPI_WIN_NULL;
  CALL(MPI_Win_create(memory, (MPI_Aint)(count * sizeof *memory), sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD,
                      &window));
  return window;
}

/* Each rank counts at the next one, and puts its number there. */
static void exchange(MPI_Win window, const long* memory, size_t count) {
  const int me = my_rank(MPI_COMM_WORLD), ranks = ranks_of(MPI_COMM_WORLD), next = (me + 1) % ranks;
  const long one = 1, mine = me + 1;
  long old = -1, seen = 0;
  CALL(MPI_Win_lock_all(0, window));
  CALL(MPI_Fetch_and_op(&one, &old, MPI_LONG, next, 0, MPI_SUM, window));
  CALL(MPI_Put(&mine, 1, MPI_LONG, next, (MPI_Aint)count - 1, 1, MPI_LONG, window));
  CALL(MPI_Win_flush(next, window));
  CALL(MPI_Get(&seen, 1, MPI_LONG, next, (MPI_Aint)count - 1, 1, MPI_LONG, window));
  CALL(MPI_Win_unlock_all(window));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(old == 0 && seen == mine, "%ld %ld", old, seen);
  CHECK(memory[0] == 1 && memory[count - 1] == (me + ranks - 1) % ranks + 1, "%ld %ld", memory[0], memory[count - 1]);
}

static void over_memory_of_the_program(void) {
  long on_stack[words] = {0};
  for (int round = 0; round < rounds; ++round) {
    const size_t count = round % 2 == 0 ? words : many;
    long* heap = calloc(count, sizeof *heap);
    memset(global, 0, sizeof global);
    memset(on_stack, 0, sizeof on_stack);
    MPI_Win windows[] = {window_over(heap, count), window_over(global, words), window_over(on_stack, words)};
    exchange(windows[0], heap, count);
    exchange(windows[1], global, words);
    exchange(windows[2], on_stack, words);
    for (int i = 0; i < 3; ++i) CALL(MPI_Win_free(&windows[i]));
    free(heap);
  }
  for (int i = 0; i < words; ++i) CHECK(before[i] == 0 && behind[i] == 0, "element %d", i);
}

static void over_memory_of_farsum(void) {
  long* memory = NULL;
  MPI_Win window = MPI_WIN_NULL;
  CALL(MPI_Win_allocate(words * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
  memset(memory, 0, words * sizeof *memory);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  exchange(window, memory, words);
  CALL(MPI_Win_free(&window));
}

static void* add_up(void* sum) {
  for (int i = 0; i < words; ++i) *(long*)sum += i;
  return NULL;
}

static void beside_a_thread(void) {
  long sum = 0;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, add_up, &sum) == 0, "no thread");
  over_memory_of_farsum();
  pthread_join(thread, NULL);
  CHECK(sum == words * (words - 1) / 2, "%ld", sum);
}

static void child_inherits_nothing(void) {
  char said[512] = "";
  FILE* child = popen("echo \"[$LD_PRELOAD]\"", "r");
  CHECK(child != NULL && fgets(said, sizeof said, child) != NULL, "no child");
  if (child != NULL) pclose(child);
  CHECK(strcmp(said, "[]\n") == 0, "a child has the preload %s", said);
}

static void use_what_was_freed(void) {
  volatile long* memory = calloc(words, sizeof *memory);
  free((void*)memory);
  memory[0] = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  over_memory_of_the_program();
  over_memory_of_farsum();
  beside_a_thread();
  child_inherits_nothing();
  if (argc > 1 && strcmp(argv[1], "faulty") == 0) use_what_was_freed();
  return finish();
}
