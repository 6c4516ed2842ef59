// How threads wait for operations of cards. Of the threads that sleep one, the watcher, does so on the descriptor of
// what carries the operations out; the others sleep until an operation has ended or the watcher leaves.
#pragma once

#include <cstdint>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "os/event_count.hpp"
#include "transport/rdma.hpp"

namespace farsum {

// What carries operations out, driven by whoever waits.
class CardWork {
 public:
  virtual ~CardWork() = default;
  // Guards the calls that follow.
  virtual ThreadMutex& asking_mutex() = 0;
  // Ends what can end; 0 where there was nothing to do.
  virtual unsigned progress() FARSUM_REQUIRES(asking_mutex()) = 0;
  // Whether the descriptor becomes readable when there is something to do; false: there may be something now.
  virtual bool arm_asking() FARSUM_REQUIRES(asking_mutex()) = 0;
  virtual int asking_descriptor() const = 0;
};

// Any thread may wait.
class CardWaits {
 public:
  // Takes the descriptor `bell`, an eventfd that does not block.
  CardWaits(CardWork& work, int bell, std::uint64_t spin_ns) : work_(work), bell_(bell), spin_ns_(spin_ns) {}
  ~CardWaits();
  CardWaits(const CardWaits&) = delete;
  CardWaits& operator=(const CardWaits&) = delete;

  // As Rdma's.
  Status wait(const CardCompletion& completion, FunctionRef<Status()> look);
  // An operation has ended. Called under the work's mutex.
  void note_ended() FARSUM_UNCHECKED_THREADS;

 private:
  bool spin(const CardCompletion& completion);
  Status sleep(const CardCompletion& completion, FunctionRef<Status()> look);
  void nap(const CardCompletion& completion);
  void watch(const CardCompletion& completion);
  bool doze(const CardCompletion& completion);

  CardWork& work_;
  const int bell_;  // wakes the watcher
  const std::uint64_t spin_ns_;
  bool is_watched_ FARSUM_GUARDED_BY(work_.asking_mutex()) = false;
  bool watcher_sleeps_ FARSUM_GUARDED_BY(work_.asking_mutex()) = false;
  EventCount ended_;  // changes with every operation that is over, and when the watcher leaves
};

}  // namespace farsum
