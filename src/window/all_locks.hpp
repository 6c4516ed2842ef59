// Epochs of lock_all: every target's lock is held, shared, or none is taken at all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "window/biased_locks.hpp"
#include "window/completions.hpp"
#include "window/epoch_rules.hpp"
#include "window/epoch_words.hpp"
#include "window/hot_window.hpp"
#include "window/local_locks.hpp"
#include "window/remote_locks.hpp"
#include "window/target_locks.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// Any thread may call.
class AllLocks {
 public:
  // All outlive it.
  struct Needs {
    HotWindow hot;
    std::uint32_t my_rank = 0;
    std::span<const std::uint32_t> remote_targets;  // those of other nodes
    const WindowTexts& texts;
    EpochWords& words;
    EpochRules& rules;
    LocalLocks& local;
    RemoteLocks& remote;
    TargetLocks& locks;
    BiasedLocks& biased;
    Completions& completions;
  };
  explicit AllLocks(const Needs& needs) : needs_(needs) {}

  Status lock();
  Status lock_unchecked();
  Status unlock();

 private:
  std::uint32_t size() const { return needs_.words.size(); }
  // The i-th target from this rank on.
  std::uint32_t after_mine(std::uint32_t i) const {
    const std::uint32_t target = needs_.my_rank + i;
    return target < size() ? target : target - size();
  }
  Status check_lockable();
  const char* lock_what_is_free(std::uint32_t& taken);
  std::optional<bool> claim_and_try(std::uint32_t target);
  Status lock_the_rest(std::uint32_t taken, const char* call);
  Status lock_free_targets(std::uint32_t& taken, const char* call);
  Status await_asked_at_once(std::uint32_t target, std::uint32_t& taken, const char* call);
  Status wait_for_target(std::uint32_t target, const char* call);
  void give_back_target(std::uint32_t target, const char* call);
  void give_back_from(std::uint32_t first, const char* call);
  Status unlock_unchecked() FARSUM_REQUIRES(needs_.rules.mutex());
  Status unlock_by_bias(const char* call) FARSUM_REQUIRES(needs_.rules.mutex());
  Status unlock_remote(const char* call);
  Status unlock_here(const char* call);

  Needs needs_;
};

}  // namespace farsum
