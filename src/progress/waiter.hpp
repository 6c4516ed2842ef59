// How a thread of the application waits: look for about as long as a wake-up costs, or yield on a crowded node, then
// sleep, with a longest gap after which the idle hook runs and the peers' lives are looked at. Who calls only says for
// what.
#pragma once

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "lockfree/lock_grant.hpp"
#include "os/event_count.hpp"

namespace farsum {

class Waiter {
 public:
  virtual ~Waiter() = default;
  // Returns once done() answers true; whoever makes it true then notifies `where`. Fails with peer_failed, naming the
  // rank, when one of the job's ranks is dead. `doing` is put into that sentence.
  virtual Status wait(EventCount& where, FunctionRef<bool()> done, const char* doing) = 0;
  // The same for what comes in as a request of another node: a thread that looks for it serves meanwhile, where it can,
  // so that its agent need not be woken for that.
  virtual Status wait_served(EventCount& where, FunctionRef<bool()> done, const char* doing) {
    return wait(where, done, doing);
  }
  // Said inside done() by a thread that has just taken in something of what it waits for: more is likely to be close
  // behind, and it had better look on for a while than sleep.
  virtual void note_come() {}
  // Returns once the grant of a lock that it is queued for has come. Fails as wait() does.
  virtual Status wait_for_grant(LockGrant& grant, const char* doing) = 0;
  // Called by those who only look whether something has come, and it has not: fails as wait() does. It is cheap enough
  // for a program that polls.
  virtual Status looked_in_vain(const char* doing) = 0;
  // Whether some rank of the node waits for another's processor: who is woken then does not run at once.
  virtual bool is_crowded() const { return false; }
  // Where this rank's threads sleep when replies, posts and notifications are to wake them.
  virtual EventCount& own_events() = 0;
};

}  // namespace farsum
