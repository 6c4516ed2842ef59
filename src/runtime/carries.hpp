// The groups of a process whose carried calls its agent goes on with. A turn visits those alone that have calls under
// way. Owner: runtime.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>

#include "base/thread_mutex.hpp"
#include "collectives/carry.hpp"
#include "lockfree/marked_lock.hpp"

namespace farsum {

// Any thread may call.
class Carries {
  struct Listed {
    explicit Listed(CarriedTurns& of) : turns(of) {}
    CarriedTurns& turns;
    std::atomic<int> under_way{0};
    bool is_active = false;
  };

 public:
  using Entry = std::list<Listed>::iterator;

  Entry add(CarriedTurns& turns);
  // Waits for a turn of this one's that is under way; it takes none any more.
  void remove(Entry entry);
  // So many more calls, or less.
  void count_under_way(Entry entry, int more);

  // By the agent, or a thread that serves in its stead. Nobody waits: where another thread takes turns at the moment,
  // that one takes them once more.
  CarriedTurns::Turn take_turns() noexcept;

 private:
  CarriedTurns::Turn take_round() noexcept;

  std::atomic<int> under_way_{0};
  MarkedLock turning_;
  ThreadMutex mutex_;  // never held for a turn
  std::condition_variable turn_has_ended_;
  // An active one without calls is found to be idle by the next round.
  std::list<Listed> active_ FARSUM_GUARDED_BY(mutex_), idle_ FARSUM_GUARDED_BY(mutex_);
  const Listed* current_ FARSUM_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace farsum
