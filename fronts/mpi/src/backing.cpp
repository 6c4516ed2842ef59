#include "backing.hpp"

#include <algorithm>

namespace farsum::mpi {

void BackingWindows::open(MPI_Comm self, bool with_init) {
  self_ = self;
  may_keep_ = with_init;
  // What fails here is told with the ranks of the window, not by the handler of a communicator nobody knows.
  library().Comm_set_errhandler(self_, MPI_ERRORS_RETURN);
  std::array ways = {Way::allocate_shared, Way::allocate, Way::create};
  // MPICH 4 and Intel MPI crash in the shared one of a program without MPI_Init.
  if (!with_init) std::reverse(ways.begin(), ways.end());
  for (const Way way : ways) {
    way_ = way;
    MPI_Win window = MPI_WIN_NULL;
    if (make(&window) != MPI_SUCCESS) continue;
    library().Win_free(&window);
    break;
  }
}

void BackingWindows::close() {
  const std::size_t count = waiting();
  note_waiting(0);
  for (std::size_t i = 0; i < count; ++i) library().Win_free(&waiting_[i]);
}

int BackingWindows::take(MPI_Win* window) {
  const std::size_t count = waiting();
  if (count == 0) return make(window);
  *window = waiting_[count - 1];
  note_waiting(count - 1);
  return MPI_SUCCESS;
}

int BackingWindows::give_back(MPI_Win* window, bool is_as_made) {
  const std::size_t count = waiting();
  const bool keeps = is_as_made && may_keep_ && count < most_waiting && !other_bindings_.are_loaded();
  if (!keeps) return library().Win_free(window);
  waiting_[count] = *window;
  note_waiting(count + 1);
  *window = MPI_WIN_NULL;
  return MPI_SUCCESS;
}

bool BackingWindows::is_waiting(MPI_Win window) const {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(waiting());
  return std::find(waiting_.begin(), end, window) != end;
}

// Which way works is a matter of the library: Open MPI 4 refuses MPI_Win_create on one process, and Open MPI 5 takes a
// millisecond for what is not shared.
int BackingWindows::make(MPI_Win* window) const {
  static char byte;
  void* memory = nullptr;
  switch (way_) {
    case Way::allocate_shared:
      return library().Win_allocate_shared(1, 1, MPI_INFO_NULL, self_, static_cast<void*>(&memory), window);
    case Way::allocate:
      return library().Win_allocate(1, 1, MPI_INFO_NULL, self_, static_cast<void*>(&memory), window);
    case Way::create:
      return library().Win_create(&byte, 1, 1, MPI_INFO_NULL, self_, window);
  }
  return MPI_ERR_OTHER;
}

}  // namespace farsum::mpi
