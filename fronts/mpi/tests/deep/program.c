/* A plugin that is opened with RTLD_DEEPBIND shares windows with the program: the program's with the plugin, and the
 * plugin's with the program.
 *
 * program PLUGIN now|lazy [begins]    `begins`: MPI begins and ends in the plugin
 */
#include <dlfcn.h>

#include "../programs/check.h"

enum { rounds = 50, words = 8 };

static void find(void* slot, void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  memcpy(slot, &found, sizeof found);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int begins = argc > 3;
  int (*begin)(int*, char***);
  int (*end)(void);
  MPI_Win (*make)(long**);
  void (*sum)(MPI_Win, int, long);
  void (*free_window)(MPI_Win*);
  int (*differs)(void);
  if (!begins) MPI_Init(&argc, &argv);
  void* const plugin = dlopen(argv[1], (strcmp(argv[2], "now") == 0 ? RTLD_NOW : RTLD_LAZY) | RTLD_DEEPBIND);
  CHECK(dlerror() == NULL, "an error is left behind");
  find(&begin, plugin, "plugin_begin");
  find(&end, plugin, "plugin_end");
  find(&make, plugin, "plugin_window");
  find(&sum, plugin, "plugin_sum");
  find(&free_window, plugin, "plugin_free");
  find(&differs, plugin, "plugin_differs");
  if (begins) CALL(begin(&argc, &argv));
  const int size = ranks_of(MPI_COMM_WORLD), right = (my_rank(MPI_COMM_WORLD) + 1) % size;
  const long one = 1;
  long *own = NULL, *its = NULL;
  MPI_Win own_window, its_window = make(&its);
  CALL(MPI_Win_allocate(words * sizeof *own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &own_window));
  *own = *its = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < rounds; ++i) {
    sum(own_window, right, 2);
    sum(its_window, right, 3);
  }
  MPI_Win_lock_all(0, its_window);
  for (int i = 0; i < rounds; ++i) CALL(MPI_Accumulate(&one, 1, MPI_LONG, right, 0, 1, MPI_LONG, MPI_SUM, its_window));
  MPI_Win_unlock_all(its_window);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(*own == rounds * 2L, "the program's window has %ld", *own);
  CHECK(*its == rounds * 4L, "the plugin's window has %ld", *its);
  CHECK(differs() == 0, "RTLD_DEFAULT finds another function than RTLD_NEXT");
  MPI_Barrier(MPI_COMM_WORLD);
  free_window(&own_window);
  CALL(MPI_Win_free(&its_window));
  if (!begins) return finish();
  CALL(end());
  return failures != 0;
}
