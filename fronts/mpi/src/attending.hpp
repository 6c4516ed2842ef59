// Threads that wait inside the MPI library, where it polls, serve the network meanwhile (farsum_attend_begin): an agent
// that is woken beside a polling thread comes late.
#pragma once

#include <cstdint>
#include <utility>

#include "farsum_embed.h"

namespace farsum::mpi {

// What a call of the library's tells of other ranks is told at its end. One that has completed requests counts, too,
// where those are the engine's and only read, for it cannot be told from others.
class HearsOfOthers {
 public:
  HearsOfOthers() = default;
  ~HearsOfOthers() { farsum_heard(); }
  HearsOfOthers(const HearsOfOthers&) = delete;
  HearsOfOthers& operator=(const HearsOfOthers&) = delete;
};

// A stretch of a thread's time by what it does: while it is in a call of the library's that may wait it attends once it
// has polled in vain for a while, and no longer than the call. What runs inside such a call, as a callback of the
// program's, is a stretch of its own. One that is left by a jump stays as it was.
class LibraryWait {
 public:
  enum class May : bool { not_attend, attend };
  explicit LibraryWait(May may = May::attend) : outer_(std::exchange(here, {may == May::attend, true, false})) {}
  ~LibraryWait() {
    if (here.attends) finish();
    here = outer_;
  }
  LibraryWait(const LibraryWait&) = delete;
  LibraryWait& operator=(const LibraryWait&) = delete;

  // From then on nobody attends, until they may again. Waits for those who are about to.
  static void forbid();
  static void allow();
  // The thread has polled inside the library.
  static void has_polled() {
    if (here.may_attend) look();
  }

 private:
  struct Stretch {
    bool may_attend = false;
    bool is_new = false;  // has not polled yet
    bool attends = false;
  };

  static void look();
  static void begin(std::uint64_t now);
  static void attend();
  static void stop();
  static void finish();

  static constinit thread_local Stretch here;
  Stretch outer_;
};

}  // namespace farsum::mpi
