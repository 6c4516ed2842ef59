// Starts the engine over the ranks of a communicator, and stops it, with all that the front keeps for it.
#pragma once

#include "backed_windows.hpp"
#include "communicator_bindings.hpp"
#include "context_ranks.hpp"
#include "copies_notice.hpp"
#include "datatypes.hpp"
#include "engine_life.hpp"
#include "farsum.h"
#include "groups.hpp"
#include "job.hpp"
#include "library.hpp"
#include "notices.hpp"
#include "progress.hpp"
#include "requests.hpp"
#include "sessions.hpp"
#include "window.hpp"

namespace farsum::mpi {

// One thread at a time.
class Engine {
 public:
  // What begins and ends with the engine.
  struct Parts {
    Progress& progress;
    WindowTable& windows;
    Datatypes& datatypes;
    Requests& requests;
    BackedWindows& backed;
    ContextRanks& ranks;
    CommunicatorBindings& bindings;
    Groups& groups;
    const Sessions& sessions;
    Notices& notices;
    CopiesNotice& copies_notice;
  };
  explicit Engine(const Parts& parts) : parts_(parts) {}

  // Collective over the ranks of `comm`: takes the claim up on all of them, or on none, and then says why.
  void start(MPI_Comm comm, EngineLife::Claim& claim);
  // Collective over the context's ranks. Frees what windows the program has left.
  void stop();
  // Of what it has kept for the engine, which has stopped.
  void let_go();

  // A duplicate of COMM_SELF (for sessions a communicator of this process alone): backing windows, probes, requests.
  MPI_Comm self() const { return self_; }

 private:
  void make_self(MPI_Comm comm);
  void drop_self();
  farsum_init_options options_for(const Job& job);
  void start_over(const Job& job, EngineLife::Claim& claim);
  const char* what_is_missing(const Job& job);
  void free_windows();

  const Parts parts_;
  MPI_Comm self_ = MPI_COMM_NULL;
};

}  // namespace farsum::mpi
