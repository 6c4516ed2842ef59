/* RANKS: 1
 * A process without memory gets MPI_ERR_NO_MEM from each call that needs some, through the handler of the window or
 * communicator, and the call goes well once there is memory again. */
#include "starve.inl"

/* With none, one, two ... allocations granted, until the call succeeds. */
#define STARVE(expression)                                                                                \
  do {                                                                                                    \
    int failed = 1, granted = 0;                                                                          \
    for (; granted < 1000; ++granted) {                                                                   \
      const int before = handled;                                                                         \
      left = granted;                                                                                     \
      failed = (expression) != MPI_SUCCESS;                                                               \
      left = -1;                                                                                          \
      failed = failed || handled != before;                                                               \
      if (!failed) break;                                                                                 \
      CHECK(class_told == MPI_ERR_NO_MEM, "%s with %d: class %d", #expression, granted, class_told);      \
      CHECK(handled == before + 1, "%s: the handler was called %d times", #expression, handled - before); \
    }                                                                                                     \
    CHECK(!failed, "%s never succeeded", #expression);                                                    \
    starved += granted;                                                                                   \
  } while (0)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Errhandler of_window, of_communicator;
  MPI_Win win, dynamic;
  MPI_Info info;
  MPI_Group group;
  MPI_Datatype stripes;
  MPI_Request request;
  int starved = 0;
  double* memory = NULL;
  static double values[4096], got[4096];
  find_allocators();
  MPI_Win_create_errhandler(on_window, &of_window);
  MPI_Comm_create_errhandler(on_communicator, &of_communicator);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_communicator);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, of_communicator);
  STARVE(MPI_Win_allocate(sizeof values, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CALL(MPI_Win_set_errhandler(win, of_window));
  STARVE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
  CALL(MPI_Win_set_errhandler(dynamic, of_window));
  STARVE(MPI_Win_attach(dynamic, values, sizeof values));
  STARVE(MPI_Win_detach(dynamic, values));
  STARVE(MPI_Win_get_info(win, &info));
  STARVE(MPI_Win_set_info(win, info));
  MPI_Info_free(&info);
  CALL(MPI_Win_get_group(win, &group));
  MPI_Group_free(&group);
  MPI_Type_vector(100, 1, 3, MPI_DOUBLE, &stripes);
  MPI_Type_commit(&stripes);
  CALL(MPI_Win_lock_all(0, win));
  for (int i = 0; i < 4096; ++i) values[i] = i;
  STARVE(MPI_Put(values, 1, stripes, 0, 0, 1, stripes, win));
  STARVE(MPI_Get(got, 1, stripes, 0, 0, 1, stripes, win));
  STARVE(MPI_Accumulate(values, 1, stripes, 0, 0, 1, stripes, MPI_SUM, win));
  STARVE(MPI_Rget(got, 1, stripes, 0, 0, 1, stripes, win, &request));
  STARVE(MPI_Wait(&request, MPI_STATUS_IGNORE));
  STARVE(MPI_Win_flush(0, win));
  CHECK(got[3] >= 6, "got %g", got[3]);
  /* The sentence of a refusal needs memory too; then the class alone is told. */
  left = 0;
  class_told = MPI_SUCCESS;
  (void)MPI_Put(values, 1, MPI_DOUBLE, 7, 0, 1, MPI_DOUBLE, win);
  left = -1;
  CHECK(class_told == MPI_ERR_NO_MEM || class_told == MPI_ERR_RANK, "class %d", class_told);
  CALL(MPI_Win_unlock_all(win));
  MPI_Type_free(&stripes);
  /* A window that is freed is gone, also where some of its memory could not be given back. */
  left = 0;
  const int freed = MPI_Win_free(&win);
  left = -1;
  int refusal = MPI_SUCCESS;
  MPI_Error_class(freed, &refusal);
  CHECK(win == MPI_WIN_NULL && (refusal == MPI_SUCCESS || refusal == MPI_ERR_NO_MEM), "class %d", refusal);
  CALL(MPI_Win_free(&dynamic));
  MPI_Errhandler_free(&of_window);
  MPI_Errhandler_free(&of_communicator);
  CHECK(starved > 10, "only %d calls had too little memory", starved);
  return finish();
}
