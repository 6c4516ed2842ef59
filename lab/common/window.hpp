// A window over memory that MPI allocates or over memory that the program has.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "common/session.hpp"

namespace lab {

enum class MemoryKind : int { allocate, create };

inline const std::map<std::string, MemoryKind>& memory_names() {
  static const std::map<std::string, MemoryKind> names{{"allocate", MemoryKind::allocate},
                                                       {"create", MemoryKind::create}};
  return names;
}

inline const char* name_of(MemoryKind kind) { return kind == MemoryKind::allocate ? "allocate" : "create"; }

// Collective to make and to destroy. The memory is zero at first and seen so by all.
class Window {
 public:
  Window(MemoryKind kind, std::size_t bytes, int displacement_unit, MPI_Comm comm) {
    const auto size = static_cast<MPI_Aint>(bytes);
    if (kind == MemoryKind::allocate) {
      MPI_Win_allocate(size, displacement_unit, MPI_INFO_NULL, comm, &base_, &win_);
    } else {
      constexpr std::size_t page_bytes = 4096;
      own_ = std::aligned_alloc(page_bytes, (bytes / page_bytes + 1) * page_bytes);
      base_ = own_;
      MPI_Win_create(base_, size, displacement_unit, MPI_INFO_NULL, comm, &win_);
    }
    // Between lock and unlock of the own rank a local store is well-defined in either memory model.
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win_);
    if (bytes != 0) {
      std::memset(base_, 0, bytes);
    }
    MPI_Win_unlock(rank, win_);
    MPI_Barrier(comm);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    MPI_Win_free(&win_);
    std::free(own_);
  }

  [[nodiscard]] MPI_Win win() const { return win_; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(base_);
  }

 private:
  MPI_Win win_ = MPI_WIN_NULL;
  void* base_ = nullptr;
  void* own_ = nullptr;
};

}  // namespace lab
