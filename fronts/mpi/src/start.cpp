// Where the front begins: called by the preloaded file once the library is initialised.
#include "attending.hpp"
#include "calls.hpp"
#include "front.hpp"
#include "guard.hpp"
#include "setting.h"
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
  put_error_calls(active);
  put_handler_calls(active);
}

// By which memory that windows were made over stays as private to this process as it was.
constexpr farsum_mpi_memory_calls memory_calls{farsum_fork_bare, farsum_memory_advise};

// MPI deletes the attributes of COMM_SELF first when it is finalized.
int shut_down(MPI_Comm, int, void*, void*) {
  try {
    report_at_end();
    Front::get().stop_engine();
    tell_witness_of_end();
    return MPI_SUCCESS;
  } catch (...) {
    return thrown_at_end("MPI_Finalize");
  }
}

// Installed in Init, before the program can install its own: the callbacks run in reverse order, and a program's may
// free windows.
void install_shutdown() {
  int keyval = MPI_KEYVAL_INVALID;
  if (library().Comm_create_keyval(MPI_COMM_NULL_COPY_FN, shut_down, &keyval, nullptr) != MPI_SUCCESS) return;
  library().Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  library().Comm_free_keyval(&keyval);  // lives until the attribute is deleted
}

void start(const farsum_mpi_preload& preload, bool with_world) {
  Front& front = Front::get();
  if (the_library.Init == nullptr) {
    the_library = *preload.library;
    the_library_handle = preload.library_handle;
    if (strict_wanted()) make_strict(the_library, *preload.active);
    preload.tell_of_memory(&memory_calls);
  }
  if (front.has_begun && !with_world) return;  // another thread's first window was first, or there is no engine
  front.sessions.set_are_alone(!with_world);
  if (with_world) {
    install_shutdown();
    report_to_witness();
    put_abort(*preload.active);
    static_cast<void>(front.begin_together(MPI_COMM_WORLD));
  }
  if (front.has_begun) return;
  if (!with_world || front.life.engine_runs()) {
    put_all(*preload.active);
    if (front.ranks.size() > front.ranks.node_size()) {
      put_waiting_calls(*preload.active);
      front.calls_are_heard = true;
      if (!farsum_mpi_setting_is_off("FARSUM_MPI_ATTEND")) {
        LibraryWait::allow();
        preload.tell_of_polls(LibraryWait::has_polled);
      }
    }
    if (with_world) put_collective_calls(*preload.active);
  }
  if (statistics_wanted()) put_statistics(*preload.active);
  front.has_begun = true;
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

extern "C" __attribute__((visibility("default"))) void farsum_mpi_front_ending() {
  if (Front::get().sessions.are_alone()) Front::get().life.announce_end();
}

extern "C" __attribute__((visibility("default"))) void farsum_mpi_front_before_mlockall(int flags) {
  // Where the engine does not run it has nothing mapped.
  static_cast<void>(farsum_before_mlockall(flags));
}

extern "C" __attribute__((visibility("default"))) void farsum_mpi_front_end() {
  if (!Front::get().sessions.are_alone()) return;
  try {
    Front::get().stop_engine();
    report_at_last_session();
  } catch (...) {
    static_cast<void>(thrown_at_end("MPI_Session_finalize"));
  }
}
