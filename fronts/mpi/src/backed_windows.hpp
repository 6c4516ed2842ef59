// Windows of the front with the backing windows that lend them their handles. Handle and entry in the table come and go
// together, for a library uses handles again at once.
#pragma once

#include <mutex>

#include "backing.hpp"
#include "library.hpp"
#include "window.hpp"

namespace farsum::mpi {

// Any thread may call; opened and closed by the one that starts or stops the engine.
class BackedWindows {
 public:
  explicit BackedWindows(WindowTable& table) : table_(table) {}

  // As BackingWindows::open.
  void open(MPI_Comm self, bool with_init) { backing_.open(self, with_init); }
  void close() { backing_.close(); }

  // Gives the window its handle and enters it. False: the library makes none. What throws has changed nothing.
  bool enter(Window& window);
  // Of one that the program has not seen.
  void take_back(Window& window);
  // As MPI_Win_free; `handle` is the program's. Where a delete callback refuses, the window stays.
  int leave(Window& window, MPI_Win* handle);

  // What the library is told of a window that is not the front's. The handle of one that was freed may be that of a
  // backing window that waits for the next: then it is none.
  MPI_Win for_library(MPI_Win win) {
    if (!backing_.some_wait()) return win;
    const std::lock_guard lock(mutex_);
    return backing_.is_waiting(win) ? MPI_WIN_NULL : win;
  }

 private:
  WindowTable& table_;
  // Recursive, for a delete callback may free another window.
  std::recursive_mutex mutex_;
  BackingWindows backing_;  // its changes are guarded by mutex_
};

}  // namespace farsum::mpi
