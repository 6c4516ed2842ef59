// Ranks and windows of MPI, as the cases of bench/ranks/cases want them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/session.hpp"

namespace lab {

class MpiWindow;

class MpiJob {
 public:
  using Window = MpiWindow;

  explicit MpiJob(const Session& session) : rank_(session.rank()), size_(session.size()) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  [[nodiscard]] static double largest(double mine) { return reduced(mine, MPI_DOUBLE, MPI_MAX); }
  [[nodiscard]] static double smallest(double mine) { return reduced(mine, MPI_DOUBLE, MPI_MIN); }
  [[nodiscard]] static std::int64_t sum(std::int64_t mine) { return reduced(mine, MPI_INT64_T, MPI_SUM); }
  [[nodiscard]] static bool all_agree(bool mine) { return lab::all_agree(mine, MPI_COMM_WORLD); }
  [[noreturn]] static void fail(const std::string& what) { lab::fail("{}", what); }

 private:
  template <class Value>
  static Value reduced(Value mine, MPI_Datatype type, MPI_Op op) {
    Value result{};
    MPI_Allreduce(&mine, &result, 1, type, op, MPI_COMM_WORLD);
    return result;
  }

  int rank_;
  int size_;
};

// Offsets are bytes. What starts or ends a window is collective.
class MpiWindow {
 public:
  MpiWindow(const MpiJob&, std::byte* user, std::size_t bytes) {
    const auto size = static_cast<MPI_Aint>(bytes);
    if (user == nullptr) {
      void* memory = nullptr;
      MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&memory), &win_);
    } else {
      MPI_Win_create(user, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
    }
  }
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;
  ~MpiWindow() { MPI_Win_free(&win_); }

  void lock_exclusive(int target) const { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win_); }
  void lock_shared(int target) const { MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win_); }
  void unlock(int target) const { MPI_Win_unlock(target, win_); }
  void lock_all() const { MPI_Win_lock_all(0, win_); }
  void unlock_all() const { MPI_Win_unlock_all(win_); }
  void flush(int target) const { MPI_Win_flush(target, win_); }
  void flush_all() const { MPI_Win_flush_all(win_); }
  void fence() const { MPI_Win_fence(0, win_); }
  void last_fence() const { MPI_Win_fence(MPI_MODE_NOSUCCEED, win_); }

  void put(int target, std::size_t offset, const void* from, std::size_t bytes) const {
    const int count = static_cast<int>(bytes);
    MPI_Put(from, count, MPI_BYTE, target, static_cast<MPI_Aint>(offset), count, MPI_BYTE, win_);
  }
  void get(int target, std::size_t offset, void* to, std::size_t bytes) const {
    const int count = static_cast<int>(bytes);
    MPI_Get(to, count, MPI_BYTE, target, static_cast<MPI_Aint>(offset), count, MPI_BYTE, win_);
  }
  // Complete on return, so that the old value can be told.
  [[nodiscard]] std::int64_t fetch_add(int target, std::size_t offset, std::int64_t value) const {
    std::int64_t old = 0;
    MPI_Fetch_and_op(&value, &old, MPI_INT64_T, target, static_cast<MPI_Aint>(offset), MPI_SUM, win_);
    MPI_Win_flush(target, win_);
    return old;
  }
  void add_one(int target, std::size_t offset) const {
    static const std::int64_t one = 1;
    MPI_Accumulate(&one, 1, MPI_INT64_T, target, static_cast<MPI_Aint>(offset), 1, MPI_INT64_T, MPI_SUM, win_);
  }
  void add_doubles(int target, const double* from, std::size_t doubles) const {
    const int count = static_cast<int>(doubles);
    MPI_Accumulate(from, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, MPI_SUM, win_);
  }

 private:
  MPI_Win win_ = MPI_WIN_NULL;
};

}  // namespace lab
