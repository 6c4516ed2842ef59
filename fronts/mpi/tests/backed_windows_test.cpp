// Windows with their handles, of a library that counts what it makes and may refuse, without a front.
#include "backed_windows.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace farsum::mpi {
namespace {

int made;
int freed;
int result;

int make_shared(MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win* window) {
  const auto handle = static_cast<std::uint64_t>(++made);
  std::memcpy(window, &handle, sizeof *window);
  return result;
}

int free_window(MPI_Win* window) {
  if (result != MPI_SUCCESS) return result;
  ++freed;
  *window = MPI_WIN_NULL;
  return MPI_SUCCESS;
}

int set_errhandler(MPI_Comm, MPI_Errhandler) { return MPI_SUCCESS; }

class BackedWindowsOfALibrary : public testing::Test {
 protected:
  BackedWindowsOfALibrary() : library_before_(the_library) {
    the_library.Win_allocate_shared = make_shared;
    the_library.Win_free = free_window;
    the_library.Comm_set_errhandler = set_errhandler;
    result = MPI_SUCCESS;
    backed_.open(MPI_COMM_SELF, true);
    made = freed = 0;
  }
  ~BackedWindowsOfALibrary() override { the_library = library_before_; }

  farsum_mpi_library library_before_;
  WindowTable table_;
  BackedWindows backed_{table_};
  Window window_;
};

TEST_F(BackedWindowsOfALibrary, are_found_by_their_handle_from_entering_until_they_leave) {
  ASSERT_TRUE(backed_.enter(window_));
  MPI_Win handle = window_.handle;
  EXPECT_EQ(table_.find(handle), &window_);
  EXPECT_EQ(backed_.leave(window_, &handle), MPI_SUCCESS);
  EXPECT_EQ(handle, MPI_WIN_NULL);
  EXPECT_EQ(table_.find(window_.handle), nullptr);
}

TEST_F(BackedWindowsOfALibrary, are_nowhere_where_the_library_makes_no_handle) {
  result = MPI_ERR_OTHER;
  EXPECT_FALSE(backed_.enter(window_));
  EXPECT_TRUE(table_.all().empty());
}

TEST_F(BackedWindowsOfALibrary, stay_where_the_library_refuses_to_free_what_the_program_set_on_them) {
  ASSERT_TRUE(backed_.enter(window_));
  window_.carries_something.store(true, std::memory_order_relaxed);
  MPI_Win handle = window_.handle;
  result = MPI_ERR_OTHER;
  EXPECT_EQ(backed_.leave(window_, &handle), MPI_ERR_OTHER);
  EXPECT_EQ(table_.find(window_.handle), &window_);
  result = MPI_SUCCESS;
  EXPECT_EQ(backed_.leave(window_, &handle), MPI_SUCCESS);
  EXPECT_EQ(freed, 1);
}

TEST_F(BackedWindowsOfALibrary, are_no_windows_for_the_library_while_their_handle_waits_for_the_next) {
  if (OtherBindings().are_loaded()) GTEST_SKIP() << "this process has loaded bindings for another language";
  ASSERT_TRUE(backed_.enter(window_));
  const MPI_Win handle = window_.handle;
  EXPECT_EQ(backed_.for_library(handle), handle);
  backed_.take_back(window_);
  EXPECT_EQ(backed_.for_library(handle), MPI_WIN_NULL);
  Window next;
  ASSERT_TRUE(backed_.enter(next));
  EXPECT_EQ(next.handle, handle);
  EXPECT_EQ(backed_.for_library(handle), handle);
  EXPECT_EQ(made, 1);
  backed_.take_back(next);
}

}  // namespace
}  // namespace farsum::mpi
