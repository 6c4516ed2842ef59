// A waiter that sleeps at once and for as long as nobody wakes it, so that a wake-up that is missing hangs.
#pragma once

#include <cstdint>

#include "lockfree/lock_grant.hpp"
#include "os/event_count.hpp"
#include "progress/waiter.hpp"

namespace farsum {

class SleepingWaiter : public Waiter {
 public:
  Status wait(EventCount& where, FunctionRef<bool()> done, const char*) override {
    while (!done()) {
      const std::uint32_t key = where.prepare();
      if (done()) {
        where.cancel();
        return {};
      }
      where.wait(key, 0);
    }
    return {};
  }
  Status wait_for_grant(LockGrant&, const char*) override { return {}; }
  Status looked_in_vain(const char*) override { return {}; }
  EventCount& own_events() override { return events_; }

 private:
  EventCount events_;
};

}  // namespace farsum
