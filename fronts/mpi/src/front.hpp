// The state of the front in this process: the engine's context and who is in it, the windows, and the private
// communicator.
#pragma once

#include <atomic>

#include "backed_windows.hpp"
#include "communicator_bindings.hpp"
#include "context_ranks.hpp"
#include "copies_notice.hpp"
#include "datatypes.hpp"
#include "engine.hpp"
#include "engine_life.hpp"
#include "farsum.h"
#include "groups.hpp"
#include "library.hpp"
#include "notices.hpp"
#include "progress.hpp"
#include "requests.hpp"
#include "sessions.hpp"
#include "window.hpp"

namespace farsum::mpi {

class Front {
 public:
  Front();

  // The one of this process. Made when the front is loaded, never destroyed: calls may come until the process ends.
  static Front& get() { return *the_one; }

  // Joins the engine, collectively over the ranks of `comm`, unless it runs for all of them. False: it runs for some of
  // them only.
  bool begin_together(MPI_Comm comm);
  void stop_engine();
  // In a program of sessions, which has no Finalize and may free its communicators: after a window of so many ranks was
  // freed, stops the engine if that was the last window of all ranks of the context. Collective over the window's
  // ranks. With several threads, of which one may be making another, it goes on until the last session's end.
  void end_if_unused(int window_ranks);

  // The engine's group of a communicator's ranks. Collective over the communicator. In a program of sessions, the ranks
  // tell each other at each call whether the engine runs, and start it where it is to.
  GroupLease engine_group(MPI_Comm comm, Groups::Reach reach = Groups::Reach::all_nodes);

  // As Engine::self.
  MPI_Comm self() const { return engine_.self(); }

  Progress progress;
  WindowTable windows;
  Datatypes datatypes;
  Requests requests;
  BackedWindows backed{windows};
  Notices notices;
  CopiesNotice copies_notice;
  EngineLife life;
  Sessions sessions{life};
  ContextRanks ranks;
  CommunicatorBindings bindings;
  Introductions introductions{ranks, notices};
  Groups groups{ranks, bindings, introductions};

  bool has_begun = false;  // guarded by the mutex of the preloaded file, under which it starts the front
  // The calls by which a rank hears of others tell the engine. Written where has_begun is.
  bool calls_are_heard = false;
  std::atomic<std::uint64_t> windows_made{0};

 private:
  static Front* const the_one;

  Engine engine_{
      {progress, windows, datatypes, requests, backed, ranks, bindings, groups, sessions, notices, copies_notice}};
};

// BackedWindows::for_library of the front's windows. Out of line, for it is the library's windows that need it.
[[gnu::noinline]] MPI_Win for_library(MPI_Win win);

}  // namespace farsum::mpi
