// Keeps the MPI library going while the program waits in the engine, or asks it again and again without ever waiting.
#pragma once

#include <x86intrin.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "library.hpp"
#include "yield_budget.hpp"

namespace farsum::mpi {

// A receive that is never matched is tested: that drives every library's progress, where a probe on a communicator of
// one process does not (MPICH answers it from a queue of its own).
class Progress {
 public:
  // `may_yield`: whether a thread that works may offer its processor to others now and then.
  void open(MPI_Comm self, bool may_yield);
  void close();
  // Ranks of this node have fewer processors than they are. Relaxed: nothing is ordered by who gives way.
  void be_in_crowded_job() { job_.store(YieldBudget::Job::is_crowded, std::memory_order_relaxed); }

  // Lets the library do what it can; gives up at once where another thread does so now. By a thread that the program
  // called MPI from.
  void drive();

  // Called by flushes, unlocks and other calls that complete without waiting, but not by puts, gets and accumulates,
  // which are followed by such a one: a program that polls memory through them must not starve the library, nor the
  // process that it waits for; but it may as well be one that computes beside others, so that it yields under a budget
  // only. Every 64th such call looks at the clock, and each of a program whose calls are so far apart that a look costs
  // it nothing: it may sleep between them.
  void tick() {
    // Relaxed, and not one step: a count lost between threads only moves the next look.
    const std::uint32_t calls = calls_.load(std::memory_order_relaxed) + 1;
    calls_.store(calls, std::memory_order_relaxed);
    if ((calls & look_mask_.load(std::memory_order_relaxed)) == 0) [[unlikely]] {
      look_at_clock();
    }
  }

 private:
  static constexpr std::uint32_t most_look_mask = 63;

  void look_at_clock();

  std::atomic<std::uint32_t> calls_{0};
  std::atomic<std::uint32_t> look_mask_{most_look_mask};  // of the calls the one with none of these bits looks
  std::atomic<std::uint64_t> last_look_{0};               // time stamp counter
  std::atomic<std::uint64_t> last_drive_{0};              // time stamp counter
  // Open MPI's, whose progress yields by itself where its launcher said so: told not to while it is only driven.
  bool (*set_library_yields_)(bool) = nullptr;
  bool may_yield_ = false;
  std::atomic<YieldBudget::Job> job_{YieldBudget::Job::has_processors};
  std::mutex testing_;
  MPI_Request never_ = MPI_REQUEST_NULL;  // guarded by testing_
};

}  // namespace farsum::mpi
