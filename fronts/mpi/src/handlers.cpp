#include "handlers.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "abi_names.hpp"
#include "calls.hpp"
#include "front.hpp"
#include "guard.hpp"
#include "library_traits.hpp"

namespace farsum::mpi {
namespace {

// What the latest handler of this thread has left behind. Not on the stack of who calls it: a handler may leave by a
// jump or an exception.
struct Left {
  bool has_run = false;
  int code = MPI_SUCCESS;
  // What was handed over as a pointer to the handle, read as one.
  std::uint64_t object = 0;
};
thread_local Left left;
thread_local std::uint64_t told = 0;

// The program's functions, each behind one of ours that keeps what it leaves. A function that was seen before has its
// place, for nobody tells when a handler is gone; programs have few. `Handle`: MPI_Win or MPI_Comm.
template <class Handle>
class Watched {
 public:
  // With more arguments than the standard's two, which are the library's.
  using Function = void(Handle*, int*, ...);

  // `function` itself where there is no place left: what it makes of the code is not seen then.
  static Function* watch(Function* function) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    for (std::size_t place = 0; place < most; ++place) {
      // Relaxed: the library hands the function that is given back to whoever may call it.
      Function* const there = functions[place].load(std::memory_order_relaxed);
      if (there == nullptr) functions[place].store(function, std::memory_order_relaxed);
      if (there == nullptr || there == function) return ours(std::make_index_sequence<most>())[place];
    }
    return function;
  }

 private:
  static constexpr std::size_t most = 32;

  template <std::size_t Place>
  static void run(Handle* object, int* code, ...) {
    // Open MPI hands over its words for the error and a null pointer, MPICH one argument at most.
    va_list more;
    va_start(more, code);
    void* const first = va_arg(more, void*);
    void* const second = va_arg(more, void*);
    va_end(more);
    std::uint64_t handle = 0;
    std::memcpy(&handle, object, sizeof *object);
    functions[Place].load(std::memory_order_relaxed)(object, code, first, second);
    left = {true, *code, handle};
  }
  template <std::size_t... Places>
  static std::array<Function*, most> ours(std::index_sequence<Places...>) {
    return {run<Places>...};
  }

  static inline std::array<std::atomic<Function*>, most> functions{};
};

int create_window_handler(MPI_Win_errhandler_function* function, MPI_Errhandler* handler) {
  return library().Win_create_errhandler(function == nullptr ? function : Watched<MPI_Win>::watch(function), handler);
}
int create_communicator_handler(MPI_Comm_errhandler_function* function, MPI_Errhandler* handler) {
  return library().Comm_create_errhandler(function == nullptr ? function : Watched<MPI_Comm>::watch(function), handler);
}

// Nothing is called then; the C++ bindings throw once their call has the code.
bool only_returns(MPI_Errhandler handler) {
  return handler == MPI_ERRORS_RETURN || (handler != MPI_ERRHANDLER_NULL && handler == names::errors_throw_exceptions);
}

template <class Handle>
int call_watched(Handle object, MPI_Errhandler handler, int code, int (*call)(Handle, int)) {
  ++told;
  if (only_returns(handler)) return code;
  left.has_run = false;
  call(object, code);
  if (handler == MPI_ERRHANDLER_NULL || ends_the_job(handler)) return code;
  if (library_succeeds_after_handlers(Front::get().self())) return MPI_SUCCESS;
  if (!left.has_run) return code;
  // MPICH's C++ bindings hand over an object of theirs. Their calls take the error for handled, and call the handler
  // again where the library's call does not.
  std::uint64_t handle = 0;
  std::memcpy(&handle, &object, sizeof object);
  return left.object == handle ? left.code : MPI_SUCCESS;
}

MPI_Errhandler kept_by_object(int got, MPI_Errhandler handler) {
  if (got != MPI_SUCCESS) return MPI_ERRHANDLER_NULL;
  const MPI_Errhandler kept = handler;
  if (handler != MPI_ERRHANDLER_NULL) library().Errhandler_free(&handler);
  return kept;
}

}  // namespace

MPI_Errhandler window_handler(MPI_Win window) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  const int got = library().Win_get_errhandler(window, &handler);
  return kept_by_object(got, handler);
}

MPI_Errhandler communicator_handler(MPI_Comm comm) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  const int got = library().Comm_get_errhandler(comm, &handler);
  return kept_by_object(got, handler);
}

std::uint64_t errors_told() { return told; }

bool ends_the_job(MPI_Errhandler handler) {
  if (handler == MPI_ERRORS_ARE_FATAL) return true;
#ifdef FARSUM_MPI_ABI_openmpi
  // A handle is the address of data in the library, and version 4 lacks this one.
  return handler != MPI_ERRHANDLER_NULL && handler == dlsym(the_library_handle, "ompi_mpi_errors_abort");
#else
  return handler == MPI_ERRORS_ABORT;
#endif
}

int call_window_handler(MPI_Win window, MPI_Errhandler handler, int code) {
  return call_watched(window, handler, code, library().Win_call_errhandler);
}
int call_communicator_handler(MPI_Comm comm, MPI_Errhandler handler, int code) {
  return call_watched(comm, handler, code, library().Comm_call_errhandler);
}

void put_handler_calls(farsum_mpi_calls& active) {
  active.Win_create_errhandler = guard::Win_create_errhandler<create_window_handler>::call;
  active.Comm_create_errhandler = guard::Comm_create_errhandler<create_communicator_handler>::call;
}

}  // namespace farsum::mpi
