// The C++ bindings that MPI-3 removed and Debian's libraries still have, where they meet the front's errors: a handler
// of the program runs once for an error, and the predefined one throws. This program passes without Farsum as it does
// with it.
#include <mpi.h>

#include <cstdio>

namespace {

int failures = 0;
int handled = 0;
int code_handled = MPI_SUCCESS;

void check(bool holds, const char* what, int found) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "rank %d: %s: %d\n", MPI::COMM_WORLD.Get_rank(), what, found);
}

void of_window(MPI::Win&, int* code, ...) {
  ++handled;
  code_handled = *code;
}
void of_communicator(MPI::Comm&, int* code, ...) {
  ++handled;
  code_handled = *code;
}

void check_handled(int error_class, const char* what) {
  check(handled == 1, what, handled);
  check(MPI::Get_error_class(code_handled) == error_class, what, code_handled);
  handled = 0;
}

void program_handlers(MPI::Win window, double* memory) {
  MPI::Errhandler handler = MPI::Win::Create_errhandler(of_window);
  window.Set_errhandler(handler);
  window.Lock(MPI::LOCK_SHARED, 77, 0);
  check_handled(MPI::ERR_RANK, "a lock of rank 77");
  window.Lock(MPI::LOCK_SHARED, 0, 0);
  window.Put(memory, 1, MPI::DOUBLE, 78, 0, 1, MPI::DOUBLE);
  check_handled(MPI::ERR_RANK, "a put to rank 78");
  window.Unlock(0);
  handler.Free();
  MPI::Intracomm all = MPI::COMM_WORLD.Dup();
  handler = MPI::Comm::Create_errhandler(of_communicator);
  all.Set_errhandler(handler);
  (void)MPI::Win::Create(memory, -1, 1, MPI::INFO_NULL, all);
  check_handled(MPI::ERR_SIZE, "a window of -1 bytes");
  handler.Free();
  all.Free();
}

#ifdef MPICH_VERSION  // Debian's Open MPI is built without exceptions
void exceptions(MPI::Win window) {
  window.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
  int thrown = MPI::SUCCESS;
  try {
    window.Lock(MPI::LOCK_SHARED, 79, 0);
  } catch (MPI::Exception& error) {
    thrown = error.Get_error_class();
  }
  check(thrown == MPI::ERR_RANK, "the class that was thrown", thrown);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  MPI::Init(argc, argv);
  auto* memory = static_cast<double*>(MPI::Alloc_mem(80, MPI::INFO_NULL));
  MPI::Win window = MPI::Win::Create(memory, 80, 8, MPI::INFO_NULL, MPI::COMM_WORLD);
  program_handlers(window, memory);
#ifdef MPICH_VERSION
  exceptions(window);
#endif
  MPI::COMM_WORLD.Barrier();
  window.Free();
  MPI::Free_mem(memory);
  int all = 0;
  MPI::COMM_WORLD.Allreduce(&failures, &all, 1, MPI::INT, MPI::SUM);
  if (MPI::COMM_WORLD.Get_rank() == 0) std::printf(all == 0 ? "all checks passed\n" : "%d checks failed\n", all);
  MPI::Finalize();
  return all == 0 ? 0 : 1;
}
