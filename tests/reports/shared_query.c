/* MPI_Win_shared_query on windows of every flavour.
 *
 * RUN: ranks=2,3
 * RUN: as=given with=farsum on=node -- given
 *
 * EXPECTED: MPI-4.1 12.2.3: of its own part a rank is told base, size and unit; of another rank's part the same where
 * it can be loaded and stored here, and the address holds what that rank has stored, else size 0; of MPI_PROC_NULL the
 * first part that is not empty. Of dynamic windows, and before MPI 4.1 of all but shared ones: MPI_ERR_RMA_FLAVOR. As
 * `given`, under Farsum alone: the other ranks of the node are given whole where Farsum has them in shared memory.
 */
#include "report.h"

enum { unit = sizeof(long), kind_of_value = 4711 };

static int must_be_given, is_before_41;

static void query(MPI_Win win, int rank, const char* what, const long* base, MPI_Aint bytes, int is_given) {
  MPI_Aint size = -1;
  int its_unit = -1;
  long* its_base = (long*)1;
  const int class = error_class(MPI_Win_shared_query(win, rank, &size, &its_unit, &its_base));
  if (class != MPI_SUCCESS) {
    CHECK(class == MPI_ERR_RMA_FLAVOR && is_before_41, "%s, rank %d: class %d", what, rank, class);
    return;
  }
  if (rank == my_rank)
    CHECK(its_base == base && size == bytes && its_unit == unit,
          "%s, own part: %p, %ld bytes, unit %d; it is %p, %ld, %d", what, (void*)its_base, (long)size, its_unit,
          (const void*)base, (long)bytes, unit);
  if (is_given) CHECK(size == bytes, "%s, rank %d is not given: %ld bytes", what, rank, (long)size);
  if (size == 0) return;
  CHECK(size == bytes && its_unit == unit, "%s, rank %d: %ld bytes, unit %d", what, rank, (long)size, its_unit);
  if (rank == MPI_PROC_NULL) {
    CHECK(its_base[0] >= kind_of_value && its_base[0] < kind_of_value + ranks, "%s, the first part: %ld", what,
          its_base[0]);
  } else {
    CHECK(its_base[0] == kind_of_value + rank && its_base[bytes / unit - 1] == -rank, "%s, rank %d: %ld, %ld", what,
          rank, its_base[0], its_base[bytes / unit - 1]);
  }
}

static void query_all(MPI_Win win, const char* what, long* base, MPI_Aint bytes) {
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  CALL(MPI_Win_lock_all(0, win));
  base[0] = kind_of_value + my_rank;
  base[bytes / unit - 1] = -my_rank;
  CALL(MPI_Win_sync(win));
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_sync(win));
  for (int rank = 0; rank < ranks; ++rank) query(win, rank, what, base, bytes, must_be_given);
  query(win, MPI_PROC_NULL, what, base, bytes, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Win_free(&win));
}

static void created(void) {
  enum { large = 1 << 20, small = 64 };
  static long fixed[small / unit];
  long *heap = malloc(large), *allocated;
  MPI_Win win;
  memset(heap, 1, large);
  CALL(MPI_Win_create(heap, large, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  query_all(win, "created over a heap's memory", heap, large);
  free(heap);
  /* A few bytes of a page that others share with them need not be shared. */
  const int of_all = must_be_given;
  must_be_given = 0;
  CALL(MPI_Win_create(fixed, small, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  query_all(win, "created over a variable", fixed, small);
  must_be_given = of_all;
  MPI_Alloc_mem(large, MPI_INFO_NULL, &allocated);
  CALL(MPI_Win_create(allocated, large, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  query_all(win, "created over MPI_Alloc_mem's memory", allocated, large);
  MPI_Free_mem(allocated);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int version, subversion, ranks_here;
  MPI_Get_version(&version, &subversion);
  is_before_41 = version * 100 + subversion < 401;
  must_be_given = told(argc, argv, "given") && !is_before_41;
  long* memory;
  MPI_Win win;
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &ranks_here);
  MPI_Comm_free(&node);
  CALL(MPI_Win_allocate(4096, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  query_all(win, "allocated", memory, 4096);
  if (ranks_here == ranks) {
    CALL(MPI_Win_allocate_shared(4096, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    query_all(win, "allocated shared", memory, 4096);
  }
  created();
  CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Aint size;
  int its_unit;
  const int class = error_class(MPI_Win_shared_query(win, 0, &size, &its_unit, &memory));
  CHECK(class == MPI_ERR_RMA_FLAVOR, "dynamic: class %d", class);
  CALL(MPI_Win_free(&win));
  return finish();
}
