// Synchronisation: each call is one of the engine's, with MPI's arguments checked and translated.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "calls.hpp"
#include "errors.hpp"
#include "front.hpp"
#include "guard.hpp"

namespace farsum::mpi {
namespace {

inline Window* find(MPI_Win win) { return Front::get().windows.find(win); }

int result_of(const Window& window, const char* call, farsum_status status) {
  if (status == FARSUM_OK) [[likely]] {
    return MPI_SUCCESS;
  }
  return raise(window, call, status);
}

[[gnu::noinline]] int failed(MPI_Win win, const char* call, farsum_status status) {
  return raise(*find(win), call, status);
}

// The same where the library has its turn after the engine's call, whose text is told first.
[[gnu::noinline]] int failed_with_turn(MPI_Win win, const char* call, farsum_status status) {
  const int result = failed(win, call, status);
  Front::get().progress.tick();
  return result;
}

// Of calls that a program may repeat until something has come: see Progress::tick.
int polled(const Window& window, const char* call, farsum_status status) {
  Front::get().progress.tick();
  return result_of(window, call, status);
}

constexpr int all_assertions =
    MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

// Of locks, start and post: what may be in the way is not, as the program knows.
bool is_unchecked(int assertion) { return (assertion & MPI_MODE_NOCHECK) != 0; }

int bad_assertion(const Window& window, const char* call) {
  return raise(window, call, MPI_ERR_ASSERT, "the assertion has bits that MPI does not define; 0 is always right");
}

// See put_by_library in operations.cpp.
[[gnu::noinline]] int fence_by_library(int assertion, MPI_Win win) {
  return library().Win_fence(assertion, for_library(win));
}

int fence(int assertion, MPI_Win win) {
  Window* window = find(win);
  if (window == nullptr) return fence_by_library(assertion, win);
  if ((assertion & ~all_assertions) != 0) return bad_assertion(*window, "MPI_Win_fence");
  std::uint32_t flags = 0;
  if ((assertion & MPI_MODE_NOPRECEDE) != 0) flags |= FARSUM_FENCE_NO_PRECEDE;
  if ((assertion & MPI_MODE_NOSUCCEED) != 0) flags |= FARSUM_FENCE_NO_SUCCEED;
  return result_of(*window, "MPI_Win_fence", farsum_fence(window->engine, flags));
}

// The ranks of a group as ranks of the window, without an allocation for a stencil's neighbours. Translated at each
// call: libraries use handles of groups again at once, so that nothing can be kept by the handle.
class RanksOf {
 public:
  // Not ok: one of them is not in the window's group.
  RanksOf(const Window& window, MPI_Group group) {
    if (group == MPI_GROUP_NULL || library().Group_size(group, &size_) != MPI_SUCCESS) return;
    const auto size = static_cast<std::size_t>(size_);
    if (size > few) {
      many_.resize(2 * size);
      ranks_ = many_.data();
    }
    // The first half are the ranks asked about, the second the answers.
    std::iota(ranks_, ranks_ + size, 0);
    if (size != 0) library().Group_translate_ranks(group, size_, ranks_, window.group, ranks_ + size);
    ok_ = std::find(ranks_ + size, ranks_ + 2 * size, MPI_UNDEFINED) == ranks_ + 2 * size;
  }
  RanksOf(const RanksOf&) = delete;
  RanksOf& operator=(const RanksOf&) = delete;

  bool ok() const { return ok_; }
  const int* data() const { return ranks_ + size_; }
  int size() const { return size_; }

 private:
  static constexpr std::size_t few = 16;
  int size_ = 0;
  bool ok_ = false;
  std::array<int, 2 * few> place_;
  std::vector<int> many_;
  int* ranks_ = place_.data();
};

template <class Begin>
int begin_with_group(Window& window, const char* call, MPI_Group group, int assertion, Begin begin) {
  if ((assertion & ~all_assertions) != 0) return bad_assertion(window, call);
  const RanksOf ranks(window, group);
  if (!ranks.ok()) {
    return raise(window, call, MPI_ERR_GROUP, "the group must be made of ranks of the window's group");
  }
  return result_of(window, call, begin(window.engine, ranks.data(), ranks.size()));
}

int start(MPI_Group group, int assertion, MPI_Win win) {
  Window* window = find(win);
  if (window == nullptr) return library().Win_start(group, assertion, for_library(win));
  return begin_with_group(*window, "MPI_Win_start", group, assertion,
                          is_unchecked(assertion) ? farsum_start_unchecked : farsum_start);
}

int post(MPI_Group group, int assertion, MPI_Win win) {
  Window* window = find(win);
  if (window == nullptr) return library().Win_post(group, assertion, for_library(win));
  // Unchecked or not it waits for nobody, and a start without the assertion finds it.
  return begin_with_group(*window, "MPI_Win_post", group, assertion, farsum_post);
}

int test(MPI_Win win, int* flag) {
  Window* window = find(win);
  if (window == nullptr) return library().Win_test(for_library(win), flag);
  return polled(*window, "MPI_Win_test", farsum_test_exposure(window->engine, flag));
}

bool is_lock(int lock_type) { return lock_type == MPI_LOCK_SHARED || lock_type == MPI_LOCK_EXCLUSIVE; }

// What takes no lock of a rank of the engine's.
[[gnu::noinline]] int no_lock(int lock_type, int rank, int assertion, MPI_Win win) {
  const Window* window = find(win);
  if (window == nullptr) return library().Win_lock(lock_type, rank, assertion, for_library(win));
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if ((assertion & ~all_assertions) != 0) return bad_assertion(*window, "MPI_Win_lock");
  if (is_lock(lock_type))
    return result_of(*window, "MPI_Win_lock", farsum_lock(window->engine, rank, FARSUM_LOCK_UNCHECKED));
  return raise(*window, "MPI_Win_lock", MPI_ERR_LOCKTYPE, "the lock must be MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE");
}

int lock(int lock_type, int rank, int assertion, MPI_Win win) {
  const Window* window = find(win);
  constexpr int others = all_assertions & ~MPI_MODE_NOCHECK;
  if (window == nullptr || !is_lock(lock_type) || rank == MPI_PROC_NULL || (assertion & ~others) != 0) [[unlikely]] {
    return no_lock(lock_type, rank, assertion, win);
  }
  const farsum_lock_mode mode = lock_type == MPI_LOCK_SHARED ? FARSUM_LOCK_SHARED : FARSUM_LOCK_EXCLUSIVE;
  const farsum_status status = farsum_lock(window->engine, rank, mode);
  if (status == FARSUM_OK) [[likely]] {
    return MPI_SUCCESS;
  }
  return failed(win, "MPI_Win_lock", status);
}

int lock_all(int assertion, MPI_Win win) {
  Window* window = find(win);
  if (window == nullptr) return library().Win_lock_all(assertion, for_library(win));
  if ((assertion & ~all_assertions) != 0) return bad_assertion(*window, "MPI_Win_lock_all");
  return result_of(
      *window, "MPI_Win_lock_all",
      is_unchecked(assertion) ? farsum_lock_all_unchecked(window->engine) : farsum_lock_all(window->engine));
}

// When a call gives the library its turn, which may take long. What gives back a lock does so first: others wait for
// it.
enum class Turn : std::uint8_t { before_the_engine, after_the_engine };

// The calls that name one rank, and those that name none, differ in the engine's function only. Nothing but the handle
// is kept across the engine's call: what went wrong is told from a function of its own.
template <farsum_status (*Engine)(farsum_window, int), int (*farsum_mpi_library::*Library)(int, MPI_Win),
          Turn turn = Turn::before_the_engine>
struct OfRank {
  static const char* const name;
  static int call(int rank, MPI_Win win) {
    const Window* window = find(win);
    if (window == nullptr || rank < 0) [[unlikely]] {
      return without_engine(rank, win);
    }
    if constexpr (turn == Turn::before_the_engine) Front::get().progress.tick();
    const farsum_status status = Engine(window->engine, rank);
    if (status == FARSUM_OK) [[likely]] {
      if constexpr (turn == Turn::after_the_engine) Front::get().progress.tick();
      return MPI_SUCCESS;
    }
    return turn == Turn::after_the_engine ? failed_with_turn(win, name, status) : failed(win, name, status);
  }

 private:
  [[gnu::noinline]] static int without_engine(int rank, MPI_Win win) {
    const Window* window = find(win);
    if (window == nullptr) return (library().*Library)(rank, for_library(win));
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    return raise(*window, name, MPI_ERR_RANK, "the rank is negative");
  }
};

template <farsum_status (*Engine)(farsum_window), int (*farsum_mpi_library::*Library)(MPI_Win),
          Turn turn = Turn::before_the_engine>
struct OfWindow {
  static const char* const name;
  static int call(MPI_Win win) {
    const Window* window = find(win);
    if (window == nullptr) [[unlikely]] {
      return (library().*Library)(for_library(win));
    }
    if constexpr (turn == Turn::before_the_engine) Front::get().progress.tick();
    const farsum_status status = Engine(window->engine);
    if (status == FARSUM_OK) [[likely]] {
      if constexpr (turn == Turn::after_the_engine) Front::get().progress.tick();
      return MPI_SUCCESS;
    }
    return turn == Turn::after_the_engine ? failed_with_turn(win, name, status) : failed(win, name, status);
  }
};

farsum_status flush_everywhere(farsum_window window) { return farsum_flush(window, FARSUM_ALL_RANKS); }
farsum_status flush_local_everywhere(farsum_window window) { return farsum_flush_local(window, FARSUM_ALL_RANKS); }

using Unlock = OfRank<farsum_unlock, &farsum_mpi_library::Win_unlock, Turn::after_the_engine>;
using Flush = OfRank<farsum_flush, &farsum_mpi_library::Win_flush>;
using FlushLocal = OfRank<farsum_flush_local, &farsum_mpi_library::Win_flush_local>;
using Complete = OfWindow<farsum_complete, &farsum_mpi_library::Win_complete>;
using WaitExposure = OfWindow<farsum_wait_exposure, &farsum_mpi_library::Win_wait>;
using UnlockAll = OfWindow<farsum_unlock_all, &farsum_mpi_library::Win_unlock_all, Turn::after_the_engine>;
using Sync = OfWindow<farsum_sync, &farsum_mpi_library::Win_sync>;
using FlushAll = OfWindow<flush_everywhere, &farsum_mpi_library::Win_flush_all>;
using FlushLocalAll = OfWindow<flush_local_everywhere, &farsum_mpi_library::Win_flush_local_all>;

template <>
const char* const Unlock::name = "MPI_Win_unlock";
template <>
const char* const Flush::name = "MPI_Win_flush";
template <>
const char* const FlushLocal::name = "MPI_Win_flush_local";
template <>
const char* const Complete::name = "MPI_Win_complete";
template <>
const char* const WaitExposure::name = "MPI_Win_wait";
template <>
const char* const UnlockAll::name = "MPI_Win_unlock_all";
template <>
const char* const Sync::name = "MPI_Win_sync";
template <>
const char* const FlushAll::name = "MPI_Win_flush_all";
template <>
const char* const FlushLocalAll::name = "MPI_Win_flush_local_all";

}  // namespace

void put_epoch_calls(farsum_mpi_calls& active) {
  active.Win_fence = guard::Win_fence<fence>::call;
  active.Win_start = guard::Win_start<start>::call;
  active.Win_complete = guard::Win_complete<Complete::call>::call;
  active.Win_post = guard::Win_post<post>::call;
  active.Win_wait = guard::Win_wait<WaitExposure::call>::call;
  active.Win_test = guard::Win_test<test>::call;
  active.Win_lock = guard::Win_lock<lock>::call;
  active.Win_lock_all = guard::Win_lock_all<lock_all>::call;
  active.Win_unlock = guard::Win_unlock<Unlock::call>::call;
  active.Win_unlock_all = guard::Win_unlock_all<UnlockAll::call>::call;
  active.Win_flush = guard::Win_flush<Flush::call>::call;
  active.Win_flush_all = guard::Win_flush_all<FlushAll::call>::call;
  active.Win_flush_local = guard::Win_flush_local<FlushLocal::call>::call;
  active.Win_flush_local_all = guard::Win_flush_local_all<FlushLocalAll::call>::call;
  active.Win_sync = guard::Win_sync<Sync::call>::call;
}

}  // namespace farsum::mpi
