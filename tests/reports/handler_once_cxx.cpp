// Error handlers of MPI's C++ bindings, which MPICH 4.0 and Open MPI 4.1 still have: a function of the program's, and
// exceptions.
//
// RUN: libraries=mpich,openmpi
//
// EXPECTED: one call for one error, and one exception with the class of the error (MPI-2.2 8.3, 16.1.8).
// Debian's Open MPI is built without exceptions.
#include "report.h"

#if defined(MPI_VERSION) && __has_include(<mpicxx.h>) || defined(OPEN_MPI)
namespace {

int called;

void on_error(MPI::Win& /*win*/, int* /*code*/, ...) { ++called; }

int class_thrown(MPI::Win& win, int rank) {
  try {
    win.Lock(MPI::LOCK_SHARED, rank, 0);
  } catch (MPI::Exception& thrown) {
    return thrown.Get_error_class();
  }
  return MPI_SUCCESS;
}

void check_operations(MPI::Win& win, const long* memory) {
  const int peer = 1 - my_rank;
  const long value = 10 + my_rank;
  win.Fence(0);
  win.Put(&value, 1, MPI::LONG, peer, 3, 1, MPI::LONG);
  win.Fence(0);
  win.Accumulate(&value, 1, MPI::LONG, peer, 3, 1, MPI::LONG, MPI::SUM);
  win.Fence(MPI::MODE_NOSUCCEED);
  CHECK(memory[3] == 2 * (10 + peer), "%ld", memory[3]);
}

}  // namespace

int main(int argc, char** argv) {
  MPI::Init(argc, argv);
  learn_ranks();
  long* memory = static_cast<long*>(MPI::Alloc_mem(64, MPI::INFO_NULL));
  MPI::Win win = MPI::Win::Create(memory, 64, sizeof *memory, MPI::INFO_NULL, MPI::COMM_WORLD);
  check_operations(win, memory);
  MPI::Errhandler handler = MPI::Win::Create_errhandler(on_error);
  win.Set_errhandler(handler);
  for (int round = 1; round <= 3; ++round) {
    CHECK(class_thrown(win, 77) == MPI_SUCCESS, "round %d throws", round);
    CHECK(called == round, "called %d times for %d errors", called, round);
  }
#ifndef OPEN_MPI
  win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
  const int thrown = class_thrown(win, 78);
  CHECK(thrown == MPI_ERR_RANK, "thrown: class %d", thrown);
#endif
  handler.Free();
  win.Free();
  MPI::Free_mem(memory);
  return finish();
}
#else
int main(int argc, char** argv) {
  begin(&argc, &argv);
  skip("C++ bindings in this library");
}
#endif
