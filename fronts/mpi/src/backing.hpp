// Backing windows: windows of the library's for this process alone, which lend their handle, name, attributes and error
// handler to the engine's. Those that come back as they were made wait for the next window, for a library may take
// longer to make one than the engine takes for all the rest.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "bindings.hpp"
#include "library.hpp"

namespace farsum::mpi {

// One thread at a time; any may ask whether some wait.
class BackingWindows {
 public:
  // Finds out how the library is asked for one. Over `self`, a communicator of this process alone, which is the
  // front's. `with_init`: the program has called MPI_Init; in one of sessions only, attributes may be set before the
  // front is there, and nothing is kept.
  void open(MPI_Comm self, bool with_init);
  // Frees those that wait.
  void close();

  int take(MPI_Win* window);
  // As MPI_Win_free. `is_as_made`: nothing was set on it by the calls that the front knows.
  int give_back(MPI_Win* window, bool is_as_made);
  bool is_waiting(MPI_Win window) const;
  bool some_wait() const { return waiting() != 0; }

 private:
  enum class Way { allocate_shared, allocate, create };
  static constexpr std::size_t most_waiting = 8;

  int make(MPI_Win* window) const;
  // Relaxed, both: written by one thread at a time, and a program that uses a handle while another thread frees its
  // window has no answer to expect.
  std::size_t waiting() const { return waiting_count_.load(std::memory_order_relaxed); }
  void note_waiting(std::size_t count) { waiting_count_.store(count, std::memory_order_relaxed); }

  MPI_Comm self_ = MPI_COMM_NULL;
  Way way_ = Way::allocate_shared;
  bool may_keep_ = false;
  OtherBindings other_bindings_;
  std::array<MPI_Win, most_waiting> waiting_{};
  std::atomic<std::size_t> waiting_count_{0};
};

}  // namespace farsum::mpi
