// Wait, test and free of requests. While a request of the engine's lives they look at theirs first; a call that waits
// for both kinds blocks in neither the library nor the engine, but asks both in turn.
#include <time.h>
#include <x86intrin.h>

#include <algorithm>

#include "attending.hpp"
#include "calls.hpp"
#include "errors.hpp"
#include "farsum_embed.h"
#include "front.hpp"
#include "guard.hpp"

namespace farsum::mpi {
namespace {

Requests& requests() { return Front::get().requests; }

// Between two looks of a loop that no one wakes, for it waits for the library, too: the thread looks on for about as
// long as a wake-up costs, then it sleeps for longer and longer, since 2 cores may serve 4 ranks that all wait.
class Patience {
 public:
  void pause() {
    if (__rdtsc() - began_ < look_ticks) {
      _mm_pause();
      return;
    }
    const timespec gap{0, gap_ns_};
    nanosleep(&gap, nullptr);
    gap_ns_ = std::min(gap_ns_ * 2, longest_gap_ns);
  }

 private:
  static constexpr std::uint64_t look_ticks = 60'000;  // some 20 us
  static constexpr long longest_gap_ns = 200'000;
  std::uint64_t began_ = __rdtsc();
  long gap_ns_ = 5'000;
};

// The requests of one call that are the engine's.
class Mine {
 public:
  Mine(int count, const MPI_Request* handles) : positions_(requests().find_all(count, handles)) {
    requests().drop_finished();
    const auto is_null = [](MPI_Request handle) { return handle == MPI_REQUEST_NULL; };
    if (!positions_.empty()) alone_ = std::count_if(handles, handles + count, is_null) + ssize() == count;
  }

  bool none() const { return positions_.empty(); }
  // No request of the library's is among them.
  bool alone() const { return alone_; }
  bool single() const { return positions_.size() == 1; }

  // Looks at each once; returns whether some still wait for the engine.
  bool test_each() {
    bool some_left = false;
    for (const auto& position : positions_) some_left |= !requests().test(*position.request);
    return some_left;
  }

  // Waits for all. What else the call names goes on meanwhile.
  void finish() {
    if (alone_) {
      for (const auto& position : positions_) requests().wait(*position.request);
      return;
    }
    Patience patience;
    while (test_each()) {
      Front::get().progress.drive();
      patience.pause();
    }
  }

  // The outcome of a call that completed at most one request.
  int outcome(int result, int index) const {
    if (result != MPI_SUCCESS) return result;
    for (const auto& position : positions_) {
      if (position.index == index) return Requests::error_of(*position.request).result;
    }
    return result;
  }

  // The outcome of a call that completed `count` requests, whose status is statuses[k] for the request at indices[k]
  // (k itself without indices).
  int outcome(int result, int count, const int* indices, MPI_Status* statuses) const {
    if (result != MPI_SUCCESS && result != MPI_ERR_IN_STATUS) return result;
    bool is_told = result != MPI_SUCCESS;
    for (const auto& position : positions_) {
      if (position.request->status == FARSUM_OK) continue;
      const int* found = indices == nullptr ? nullptr : std::find(indices, indices + count, position.index);
      if (found != nullptr && found == indices + count) continue;
      const int error = Requests::error_of(*position.request).code;
      result = MPI_ERR_IN_STATUS;
      if (statuses == MPI_STATUSES_IGNORE) continue;
      if (!is_told) {
        for (int i = 0; i < count; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
        is_told = true;
      }
      statuses[found == nullptr ? position.index : static_cast<int>(found - indices)].MPI_ERROR = error;
    }
    return result;
  }

 private:
  std::ptrdiff_t ssize() const { return static_cast<std::ptrdiff_t>(positions_.size()); }

  std::vector<Requests::Position> positions_;
  bool alone_ = false;
};

// The result of a call, which has said by `*set` whether it has completed something, unless it failed.
int heard_if_set(int result, const int* set) {
  if (result == MPI_ERR_IN_STATUS || (result == MPI_SUCCESS && *set != 0)) farsum_heard();
  return result;
}

// A program that tests in a loop must not starve whom it waits for.
void looked_in_vain(const Mine& mine) {
  if (!mine.none()) Front::get().progress.tick();
}

int wait(MPI_Request* request, MPI_Status* status) {
  const HearsOfOthers hears;
  if (!requests().any_open()) [[likely]] {
    const LibraryWait wait;
    return library().Wait(request, status);
  }
  Mine mine(1, request);
  mine.finish();
  return mine.outcome(library().Wait(request, status), 0);
}

int test_one(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!requests().any_open()) [[likely]] {
    return heard_if_set(library().Test(request, flag, status), flag);
  }
  Mine mine(1, request);
  mine.test_each();
  const int result = heard_if_set(library().Test(request, flag, status), flag);
  if (*flag != 0) return mine.outcome(result, 0);
  looked_in_vain(mine);
  return result;
}

int waitall(int count, MPI_Request handles[], MPI_Status statuses[]) {
  const HearsOfOthers hears;
  if (!requests().any_open()) [[likely]] {
    const LibraryWait wait;
    return library().Waitall(count, handles, statuses);
  }
  Mine mine(count, handles);
  mine.finish();
  return mine.outcome(library().Waitall(count, handles, statuses), count, nullptr, statuses);
}

int testall(int count, MPI_Request handles[], int* flag, MPI_Status statuses[]) {
  if (!requests().any_open()) [[likely]] {
    return heard_if_set(library().Testall(count, handles, flag, statuses), flag);
  }
  Mine mine(count, handles);
  mine.test_each();
  const int result = heard_if_set(library().Testall(count, handles, flag, statuses), flag);
  if (*flag != 0) return mine.outcome(result, count, nullptr, statuses);
  looked_in_vain(mine);
  return result;
}

// For calls that return with the first of several: `look` asks the library and says whether something was complete.
template <class Look>
void until_first(Mine& mine, Look look) {
  if (mine.alone() && mine.single()) mine.finish();
  Patience patience;
  while (mine.test_each() && !look()) patience.pause();
}

int waitany(int count, MPI_Request handles[], int* index, MPI_Status* status) {
  const HearsOfOthers hears;
  if (!requests().any_open()) [[likely]] {
    const LibraryWait wait;
    return library().Waitany(count, handles, index, status);
  }
  Mine mine(count, handles);
  int flag = 0;
  int result = MPI_SUCCESS;
  until_first(mine, [&] {
    result = library().Testany(count, handles, index, &flag, status);
    return result != MPI_SUCCESS || flag != 0;
  });
  if (result == MPI_SUCCESS && flag == 0) result = library().Waitany(count, handles, index, status);
  return mine.outcome(result, *index);
}

int testany(int count, MPI_Request handles[], int* index, int* flag, MPI_Status* status) {
  if (!requests().any_open()) [[likely]] {
    return heard_if_set(library().Testany(count, handles, index, flag, status), flag);
  }
  Mine mine(count, handles);
  mine.test_each();
  const int result = heard_if_set(library().Testany(count, handles, index, flag, status), flag);
  if (*flag != 0) return mine.outcome(result, *index);
  looked_in_vain(mine);
  return result;
}

int waitsome(int count, MPI_Request handles[], int* done, int indices[], MPI_Status statuses[]) {
  const HearsOfOthers hears;
  if (!requests().any_open()) [[likely]] {
    const LibraryWait wait;
    return library().Waitsome(count, handles, done, indices, statuses);
  }
  Mine mine(count, handles);
  int result = MPI_SUCCESS;
  *done = 0;
  until_first(mine, [&] {
    result = library().Testsome(count, handles, done, indices, statuses);
    return result != MPI_SUCCESS || *done != 0;
  });
  if (result == MPI_SUCCESS && *done == 0) result = library().Waitsome(count, handles, done, indices, statuses);
  return *done == MPI_UNDEFINED ? result : mine.outcome(result, *done, indices, statuses);
}

int testsome(int count, MPI_Request handles[], int* done, int indices[], MPI_Status statuses[]) {
  if (!requests().any_open()) [[likely]] {
    return heard_if_set(library().Testsome(count, handles, done, indices, statuses), done);
  }
  Mine mine(count, handles);
  mine.test_each();
  const int result = heard_if_set(library().Testsome(count, handles, done, indices, statuses), done);
  if (*done == 0) looked_in_vain(mine);
  return *done == MPI_UNDEFINED ? result : mine.outcome(result, *done, indices, statuses);
}

// The errors of operations are told by the calls that complete them, not by those that only look.
void look(int count, const MPI_Request* handles) {
  if (!requests().any_open()) [[likely]] {
    return;
  }
  Mine mine(count, handles);
  if (mine.test_each()) looked_in_vain(mine);
}

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
  look(1, &request);
  return heard_if_set(library().Request_get_status(request, flag, status), flag);
}

int get_status_all(int count, const MPI_Request handles[], int* flag, MPI_Status statuses[]) {
  look(count, handles);
  return heard_if_set(library().Request_get_status_all(count, handles, flag, statuses), flag);
}

int get_status_any(int count, const MPI_Request handles[], int* index, int* flag, MPI_Status* status) {
  look(count, handles);
  return heard_if_set(library().Request_get_status_any(count, handles, index, flag, status), flag);
}

int get_status_some(int count, const MPI_Request handles[], int* done, int indices[], MPI_Status statuses[]) {
  look(count, handles);
  return heard_if_set(library().Request_get_status_some(count, handles, done, indices, statuses), done);
}

int request_free(MPI_Request* request) {
  if (requests().any_open()) [[unlikely]] {
    requests().drop_finished();
    if (const auto mine = requests().find(*request)) requests().abandon(*mine);
  }
  return library().Request_free(request);
}

}  // namespace

void put_request_calls(farsum_mpi_calls& active) {
  active.Wait = guard::Wait<wait>::call;
  active.Test = guard::Test<test_one>::call;
  active.Waitall = guard::Waitall<waitall>::call;
  active.Testall = guard::Testall<testall>::call;
  active.Waitany = guard::Waitany<waitany>::call;
  active.Testany = guard::Testany<testany>::call;
  active.Waitsome = guard::Waitsome<waitsome>::call;
  active.Testsome = guard::Testsome<testsome>::call;
  active.Request_get_status = guard::Request_get_status<get_status>::call;
  active.Request_free = guard::Request_free<request_free>::call;
  active.Request_get_status_all = guard::Request_get_status_all<get_status_all>::call;
  active.Request_get_status_any = guard::Request_get_status_any<get_status_any>::call;
  active.Request_get_status_some = guard::Request_get_status_some<get_status_some>::call;
}

}  // namespace farsum::mpi
