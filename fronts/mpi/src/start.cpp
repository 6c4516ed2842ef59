// Where the front begins: called by the preloaded file once the library is initialised.
#include "calls.hpp"
#include "front.hpp"
#include "guard.hpp"
#include "statistics.hpp"
#include "strict.hpp"
#include "witness.hpp"

using namespace farsum::mpi;

namespace {

void put_all(farsum_mpi_calls& active) {
  put_window_calls(active);
  put_operation_calls(active);
  put_epoch_calls(active);
  put_object_calls(active);
  put_memory_calls(active);
  put_request_calls(active);
}

// Without an engine no window of this process can begin the front later either.
void leave_to_library(farsum_mpi_calls& active) {
#define FARSUM_MPI_LEAVE(name, parameters, arguments) active.name = library().name;
  FARSUM_MPI_CREATIONS(FARSUM_MPI_LEAVE, , int, int)
  FARSUM_MPI_CREATIONS(FARSUM_MPI_LEAVE, _c, MPI_Count, MPI_Aint)
  FARSUM_MPI_DYNAMIC_CREATION(FARSUM_MPI_LEAVE)
}

void start(const farsum_mpi_preload& preload, bool with_world) {
  Front& front = Front::get();
  const bool again = the_library.Init != nullptr;
  if (!again) {
    the_library = *preload.library;
    the_library_handle = preload.library_handle;
    if (strict_wanted()) make_strict(the_library, *preload.active);
  }
  if (again && !with_world) return;  // the engine could not be had before
  front.sessions_only = !with_world;
  if (with_world) {
    install_shutdown();
    report_to_witness();
    put_abort(*preload.active);
    if (!front.engine_runs()) front.start_engine(MPI_COMM_WORLD);
  }
  if (again) return;
  if (!with_world || front.engine_runs()) {
    put_all(*preload.active);
    if (with_world) put_collective_calls(*preload.active);
  } else {
    leave_to_library(*preload.active);
  }
  if (statistics_wanted()) put_statistics(*preload.active);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int farsum_mpi_front_start(const farsum_mpi_preload* preload,
                                                                             int with_world) {
  if (preload->struct_bytes != sizeof(farsum_mpi_preload)) return MPI_SUCCESS;
  try {
    start(*preload, with_world != 0);
    return MPI_SUCCESS;
  } catch (...) {
    // Before its first window a program of sessions has no communicator to tell.
    return with_world != 0 ? thrown_on_communicator("MPI_Init", MPI_COMM_WORLD) : MPI_ERR_NO_MEM;
  }
}

extern "C" __attribute__((visibility("default"))) void farsum_mpi_front_end() {
  if (!Front::get().sessions_only) return;
  try {
    Front::get().stop_engine();
    report_at_last_session();
  } catch (...) {
    static_cast<void>(thrown_at_end("MPI_Session_finalize"));
  }
}
