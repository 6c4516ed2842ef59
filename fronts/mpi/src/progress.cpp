#include "progress.hpp"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>

#include "attending.hpp"
#include "yield_budget.hpp"

namespace farsum::mpi {
namespace {

// About 80 us on processors of 2 to 4 GHz: often enough for a rendezvous, seldom enough to cost nothing. While other
// hosts are waited for the engine calls drive() more often, where nobody waits for it.
constexpr std::uint64_t gap_ticks = 225'000;
// About 1 us. Calls that are farther apart than this each look at the clock.
constexpr std::uint64_t ticks_between_calls = 3'000;

constinit thread_local YieldBudget yields_of_thread;

void yield_within_budget(YieldBudget::Job job) {
  const std::uint64_t now = __rdtsc();
  if (!yields_of_thread.allows(now)) return;
  sched_yield();
  yields_of_thread.yielded(job, now, __rdtsc());
}

}  // namespace

void Progress::open(MPI_Comm self, bool may_yield) {
  may_yield_ = may_yield;
  set_library_yields_ =
      reinterpret_cast<bool (*)(bool)>(dlsym(the_library_handle, "opal_progress_set_yield_when_idle"));
  library().Irecv(nullptr, 0, MPI_BYTE, 0, 0, self, &never_);
}

void Progress::close() {
  const std::lock_guard guard(testing_);
  if (never_ != MPI_REQUEST_NULL) {
    library().Cancel(&never_);
    library().Wait(&never_, MPI_STATUS_IGNORE);
  }
  never_ = MPI_REQUEST_NULL;
}

void Progress::drive() {
  const LibraryWait no_wait(LibraryWait::May::not_attend);
  last_drive_.store(__rdtsc(), std::memory_order_relaxed);
  // Two threads must not test one request.
  const std::unique_lock guard(testing_, std::try_to_lock);
  if (!guard.owns_lock() || never_ == MPI_REQUEST_NULL) return;
  // Another thread that waits in the library meanwhile may keep its processor for a moment.
  const bool yields = set_library_yields_ != nullptr && set_library_yields_(false);
  int flag = 0;
  library().Test(&never_, &flag, MPI_STATUS_IGNORE);
  if (yields) set_library_yields_(true);
}

void Progress::look_at_clock() {
  const std::uint64_t now = __rdtsc();
  const std::uint32_t mask = look_mask_.load(std::memory_order_relaxed);
  const std::uint64_t since_look = now - last_look_.exchange(now, std::memory_order_relaxed);
  const bool is_slow = since_look > (mask + 1) * ticks_between_calls;
  look_mask_.store(is_slow ? 0 : std::min(2 * mask + 1, most_look_mask), std::memory_order_relaxed);
  const std::uint64_t since_drive = now - last_drive_.load(std::memory_order_relaxed);
  if (since_drive < gap_ticks) return;
  drive();
  // After a longer pause it is not this thread that keeps others from running.
  if (may_yield_ && since_drive <= 20 * gap_ticks) yield_within_budget(job_.load(std::memory_order_relaxed));
}

}  // namespace farsum::mpi
