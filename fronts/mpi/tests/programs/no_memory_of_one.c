/* RANKS: 2 3
 * Where one rank has no memory left to make a window, all ranks get MPI_ERR_NO_MEM, none waits for another, and the
 * window is made once there is memory again. What the engine allocates by itself is not starved here. */
#include "starve.inl"

#include "many_lists.inl"

#ifndef LEVEL
#define LEVEL MPI_THREAD_SINGLE
#endif
#ifndef LISTS
#define LISTS 0
#endif

/* Over a list of ranks that have not met before, and then over the same once more. */
static void make_windows(MPI_Comm comm, int kinds) {
  const int starves = my_rank(comm) == ranks_of(comm) - 1;
  static char memory[4096];
  int refused = 0;
  for (int kind = 0; kind < kinds; ++kind) {
    int result = MPI_ERR_OTHER;
    for (int granted = 0; granted < 1000 && result != MPI_SUCCESS; ++granted) {
      MPI_Win win = MPI_WIN_NULL;
      void* part = NULL;
      int classes[2], bounds[2];
      const int before = handled;
      class_told = MPI_SUCCESS;
      left = starves ? granted : -1;
      result = kind % 2 == 0 ? MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &part, &win)
                             : MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, comm, &win);
      left = -1;
      if (handled != before) result = MPI_ERR_OTHER;
      classes[0] = class_told, classes[1] = -class_told;
      MPI_Allreduce(classes, bounds, 2, MPI_INT, MPI_MAX, comm);
      CHECK(bounds[0] == -bounds[1], "with %d granted the classes are %d to %d", granted, -bounds[1], bounds[0]);
      if (bounds[0] != -bounds[1]) return;
      if (result == MPI_SUCCESS) {
        CALL(MPI_Win_free(&win));
        break;
      }
      ++refused;
      CHECK(class_told == MPI_ERR_NO_MEM, "with %d granted: class %d", granted, class_told);
      CHECK(handled == before + 1, "the handler was called %d times", handled - before);
    }
    CHECK(result == MPI_SUCCESS, "no window was ever made");
  }
  CHECK(refused > 3 * kinds, "only %d windows had too little memory", refused);
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, LEVEL, &provided);
  if (provided < LEVEL) {
    if (my_rank(MPI_COMM_WORLD) == 0) puts("this library does not provide this level of threads");
    MPI_Finalize();
    return 77;
  }
  find_allocators();
  starved_parts = of_front + 1;
  MPI_Errhandler of_communicator;
  MPI_Comm backwards;
  draws drawn = {1};
  use_lists(MPI_COMM_WORLD, &drawn, LISTS);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -my_rank(MPI_COMM_WORLD), &backwards);
  MPI_Comm_create_errhandler(on_communicator, &of_communicator);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_communicator);
  MPI_Comm_set_errhandler(backwards, of_communicator);
  make_windows(MPI_COMM_WORLD, 4);
  make_windows(backwards, 2);
  MPI_Comm_free(&backwards);
  MPI_Errhandler_free(&of_communicator);
  return finish();
}
