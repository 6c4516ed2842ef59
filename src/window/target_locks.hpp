// Epochs of a lock: of one target, or of a mutex, which begins none. An epoch of a lock of this node begins and ends
// under the guard of that lock, one of another node's by a swap of the target's word; one of a lock that takes nothing
// only begins there too. What needs none of this is HotWindow::lock.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "window/completions.hpp"
#include "window/epoch_rules.hpp"
#include "window/epoch_words.hpp"
#include "window/hot_window.hpp"
#include "window/local_locks.hpp"
#include "window/operation_checks.hpp"
#include "window/remote_locks.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// Any thread may call.
class TargetLocks {
 public:
  // All outlive it.
  struct Needs {
    HotWindow hot;
    const OperationChecks& checks;
    const WindowTexts& texts;
    EpochWords& words;
    EpochRules& rules;
    LocalLocks& local;
    RemoteLocks& remote;
    Completions& completions;
  };
  explicit TargetLocks(const Needs& needs) : needs_(needs) {}

  // Ends the epoch of a fence where there is one, waits for the lock, or says why it cannot be.
  Status lock(std::uint32_t target, LockMode mode);
  // The thread was queued by HotWindow::lock.
  Status await_queued(std::uint32_t target, LockMode mode, std::uint32_t slot);
  // An epoch as under a lock, which takes none: nobody waits for it, nor does it wait.
  Status lock_unchecked(std::uint32_t target);
  Status unlock(std::uint32_t target);

  // Mutexes of a rank, beside the lock of its part. A rank that locks one twice waits for itself.
  Status lock_mutex(std::uint32_t target, std::uint32_t index);
  Status unlock_mutex(std::uint32_t target, std::uint32_t index);

  // ---- for locks of all ----

  // An epoch without a lock may begin at the target: the word is the caller's. False where an epoch includes it.
  bool claim(std::uint32_t target);
  // Gives the lock back; the word of the target is the caller's.
  Status drop(std::uint32_t target, LockMode mode, const char* call);
  // Ends whatever epoch includes the target, with its lock, as far as it goes. With the mutex of the rules.
  void abandon(std::uint32_t target, const char* call) noexcept;

 private:
  Status refuse(std::uint32_t target, const char* why) const;
  Status not_held(std::uint32_t target) const;
  Status check_lockable(std::uint32_t target);
  Status lock_here(std::uint32_t target, LockMode mode);
  Status lock_remote(std::uint32_t target, LockMode mode);
  Status unlock_here(std::uint32_t target, std::int32_t open);
  Status unlock_remote(std::uint32_t target, std::int32_t open);
  Status unlock_unchecked(std::uint32_t target);
  void open(std::uint32_t target, LockMode mode) {
    needs_.words.set(target, mode == LockMode::exclusive ? locked_exclusive : locked_shared);
  }

  Needs needs_;
};

}  // namespace farsum
