#include "backed_windows.hpp"

#include <atomic>

namespace farsum::mpi {

bool BackedWindows::enter(Window& window) {
  const std::lock_guard lock(mutex_);
  if (backing_.take(&window.handle) != MPI_SUCCESS) return false;
  try {
    table_.add(&window);
  } catch (...) {
    backing_.give_back(&window.handle, true);
    throw;
  }
  return true;
}

void BackedWindows::take_back(Window& window) {
  const std::lock_guard lock(mutex_);
  table_.remove(&window);
  backing_.give_back(&window.handle, true);
}

// The delete callbacks find the window in the table.
int BackedWindows::leave(Window& window, MPI_Win* handle) {
  const std::lock_guard lock(mutex_);
  const int result = backing_.give_back(handle, !window.carries_something.load(std::memory_order_relaxed));
  if (result == MPI_SUCCESS) table_.remove(&window);
  return result;
}

}  // namespace farsum::mpi
