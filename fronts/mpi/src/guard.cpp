#include "guard.hpp"

#include <cstdio>
#include <exception>
#include <new>

#include "errors.hpp"
#include "front.hpp"
#include "handlers.hpp"

namespace farsum::mpi {
namespace {

struct Thrown {
  int error_class;
  const char* sentence;  // lives while the exception is handled
};

Thrown look() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {MPI_ERR_NO_MEM, "the process has no memory left"};
  } catch (const std::exception& error) {
    return {MPI_ERR_OTHER, error.what()};
  } catch (...) {
    return {MPI_ERR_OTHER, "something unknown was thrown"};
  }
}

// There is no memory for a code of its own either: the error is the class, and the sentence goes to stderr.
int without_sentence(const char* call, const Thrown& what) noexcept {
  std::fprintf(stderr, "farsum: %s: %s\n", call, what.sentence);
  return what.error_class;
}

}  // namespace

int thrown_on_window(const char* call, MPI_Win win) {
  const Thrown what = look();
  const Window* window = Front::get().windows.find(win);
  if (window == nullptr) return thrown_on_nothing(call);
  try {
    return raise(*window, call, what.error_class, what.sentence);
  } catch (FARSUM_MPI_CAUGHT) {
    let_thread_unwind();
    // Nothing was told yet: what allocates in raise comes before the handler.
    return call_window_handler(win, window_handler(win), without_sentence(call, what));
  }
}

int thrown_on_communicator(const char* call, MPI_Comm comm) {
  const Thrown what = look();
  try {
    return raise(comm, call, what.error_class, what.sentence);
  } catch (FARSUM_MPI_CAUGHT) {
    let_thread_unwind();
    return call_communicator_handler(comm, communicator_handler(comm), without_sentence(call, what));  // see above
  }
}

void let_thread_unwind() {
  if (std::current_exception() == nullptr) throw;
}

int thrown_at_end(const char* call) noexcept { return without_sentence(call, look()); }

int thrown_on_nothing(const char* call) {
  const Front& front = Front::get();
  // Sessions have no MPI_COMM_SELF.
  return thrown_on_communicator(call, front.sessions.are_alone() ? front.self() : MPI_COMM_SELF);
}

}  // namespace farsum::mpi
