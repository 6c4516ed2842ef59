// Backing windows, of a library that counts how many it makes and frees.
#include "backing.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace farsum::mpi {
namespace {

int made;
int freed;

int make_shared(MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win* window) {
  const auto handle = static_cast<std::uint64_t>(++made);
  std::memcpy(window, &handle, sizeof *window);
  return MPI_SUCCESS;
}

int make_over_memory(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  return make_shared(bytes, unit, info, comm, base, window);
}

int free_window(MPI_Win* window) {
  ++freed;
  *window = MPI_WIN_NULL;
  return MPI_SUCCESS;
}

int set_errhandler(MPI_Comm, MPI_Errhandler) { return MPI_SUCCESS; }

class BackingWindowsOfALibrary : public testing::Test {
 protected:
  BackingWindowsOfALibrary() : library_before_(the_library) {
    the_library.Win_allocate_shared = make_shared;
    the_library.Win_create = make_over_memory;
    the_library.Win_free = free_window;
    the_library.Comm_set_errhandler = set_errhandler;
    backing_.open(MPI_COMM_SELF, true);
    made = freed = 0;
  }
  ~BackingWindowsOfALibrary() override { the_library = library_before_; }

  MPI_Win taken() {
    MPI_Win window = MPI_WIN_NULL;
    EXPECT_EQ(backing_.take(&window), MPI_SUCCESS);
    return window;
  }

  farsum_mpi_library library_before_;
  BackingWindows backing_;
};

TEST_F(BackingWindowsOfALibrary, are_used_again_where_nothing_was_set_on_them) {
  if (OtherBindings().are_loaded()) GTEST_SKIP() << "this process has loaded bindings for another language";
  for (int i = 0; i < 100; ++i) {
    MPI_Win window = taken();
    EXPECT_EQ(backing_.give_back(&window, true), MPI_SUCCESS);
    EXPECT_EQ(window, MPI_WIN_NULL);
  }
  MPI_Win window = taken();
  const MPI_Win kept = window;
  EXPECT_FALSE(backing_.is_waiting(kept));
  EXPECT_EQ(backing_.give_back(&window, true), MPI_SUCCESS);
  EXPECT_TRUE(backing_.is_waiting(kept));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(freed, 0);
  backing_.close();
  EXPECT_EQ(freed, 1);
}

TEST_F(BackingWindowsOfALibrary, are_freed_at_once_where_something_was_set_on_them) {
  for (int i = 1; i <= 3; ++i) {
    MPI_Win window = taken();
    EXPECT_EQ(backing_.give_back(&window, false), MPI_SUCCESS);
    EXPECT_EQ(made, i);
    EXPECT_EQ(freed, i);
  }
}

TEST_F(BackingWindowsOfALibrary, are_freed_at_once_in_a_program_of_sessions) {
  backing_.open(MPI_COMM_SELF, false);
  made = freed = 0;
  MPI_Win window = taken();
  EXPECT_EQ(backing_.give_back(&window, true), MPI_SUCCESS);
  EXPECT_EQ(freed, 1);
}

TEST_F(BackingWindowsOfALibrary, are_one_window_each_and_wait_in_a_small_number) {
  if (OtherBindings().are_loaded()) GTEST_SKIP() << "this process has loaded bindings for another language";
  constexpr int count = 50;
  std::vector<MPI_Win> windows;
  for (int i = 0; i < count; ++i) windows.push_back(taken());
  EXPECT_EQ(std::set(windows.begin(), windows.end()).size(), count);
  for (MPI_Win& window : windows) EXPECT_EQ(backing_.give_back(&window, true), MPI_SUCCESS);
  EXPECT_EQ(freed, count - 8);
  backing_.close();
  EXPECT_EQ(freed, count);
}

TEST(OtherBindings, are_told_from_the_library_and_from_other_objects_by_their_names) {
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libmpichfort.so.12", "/opt/mpich/lib/libmpifort.so.12",
                           "/usr/lib/libmpi_mpifh.so.40", "libmpi_cxx.so.40", "/usr/lib/libmpichcxx.so.12"}) {
    EXPECT_TRUE(is_of_other_bindings(path)) << path;
  }
  for (const char* path : {"", "/usr/lib/libmpi.so.40", "/usr/lib/libmpich.so.12", "/usr/lib/libmpi_abi.so.0",
                           "/usr/lib/libgfortran.so.5", "/home/libmpicxx/program", "/usr/lib/libstdc++.so.6"}) {
    EXPECT_FALSE(is_of_other_bindings(path)) << path;
  }
}

}  // namespace
}  // namespace farsum::mpi
