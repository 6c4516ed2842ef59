// Threads of which at most one runs at a time, and only when it is told to, so that code that waits runs in virtual
// time and takes the same course each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>

#include "progress/waiter.hpp"

namespace farsum {

// The body, which may pause(), runs within resume(). It is over before this is gone.
class SteppedThread {
 public:
  explicit SteppedThread(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          go_.acquire();
          body();
          is_over_ = true;
          back_.release();
        }) {}
  ~SteppedThread() { thread_.join(); }
  SteppedThread(const SteppedThread&) = delete;
  SteppedThread& operator=(const SteppedThread&) = delete;

  bool is_over() const { return is_over_; }
  // Lets it run until it pauses or ends.
  void resume() {
    go_.release();
    back_.acquire();
  }
  // By the body.
  void pause() {
    back_.release();
    go_.acquire();
  }

 private:
  std::binary_semaphore go_{0}, back_{0};
  bool is_over_ = false;
  std::thread thread_;
};

// Sleeps at once, and for as long as nobody wakes it: who gives it its turns asks may_go_on() first.
class SteppedWaiter final : public Waiter {
 public:
  Status wait(EventCount& where, FunctionRef<bool()> done, const char* doing) override {
    for (;;) {
      key_ = where.prepare();
      if (done()) {
        where.cancel();
        return {};
      }
      if (!failure_.empty()) {
        where.cancel();
        return {Code::peer_failed, std::string(doing) + ": " + failure_};
      }
      sleeps_on_ = &where;
      thread_->pause();
      sleeps_on_ = nullptr;
      where.cancel();
    }
  }
  Status wait_for_grant(LockGrant&, const char*) override { return {}; }
  Status looked_in_vain(const char*) override { return {}; }
  EventCount& own_events() override { return events_; }

  void be(SteppedThread& thread) { thread_ = &thread; }
  bool may_go_on() const {
    if (sleeps_on_ == nullptr) return false;
    const std::uint32_t now = sleeps_on_->prepare();
    sleeps_on_->cancel();
    return now != key_ || !failure_.empty();
  }
  // What each wait that is not over fails with from now on.
  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }
  bool has_failed() const { return !failure_.empty(); }

 private:
  SteppedThread* thread_ = nullptr;
  EventCount events_;
  EventCount* sleeps_on_ = nullptr;
  std::uint32_t key_ = 0;
  std::string failure_;
};

}  // namespace farsum
