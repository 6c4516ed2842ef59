#include "window/epoch_rules.hpp"

#include <string_view>

#include <fmt/format.h>

#include "window/traffic.hpp"

namespace farsum {

class EpochRules::Facts final : public EpochFacts {
 public:
  Facts(const EpochRules& rules, std::uint32_t target) : rules_(rules), target_(target) {}

  bool never_locked() const override { return (rules_.promises_ & promise_no_locks) != 0; }
  bool holds_locks() const override { return rules_.words_.locks_held() != 0; }
  bool is_target_open() const override { return rules_.words_.of(target_) != no_epoch; }
  // Those who ask hold the mutex: why_not.
  bool was_fence_used() const override FARSUM_UNCHECKED_THREADS {
    return rules_.issued_.load(std::memory_order_relaxed) ||
           hot_traffic(rules_.views_).operations != rules_.hot_at_fence_;
  }

 private:
  const EpochRules& rules_;
  std::uint32_t target_;
};

const char* EpochRules::why_not(EpochCall call, std::uint32_t target) const {
  return farsum::why_not(call, state_, Facts(*this, target));
}

const char* EpochRules::make_way(EpochCall call, std::uint32_t target) {
  const char* const why = why_not(call, target);
  if (why == nullptr && (after(call, state_) & epoch_fence) == 0) (void)set_fence(false);
  return why;
}

bool EpochRules::set_fence(bool open) {
  if (open == is(epoch_fence)) return true;
  for (std::uint32_t target = 0; target < words_.size(); ++target) {
    if (!open) {
      words_.close(target);
    } else if (!words_.open(target, active_epoch)) {
      while (target-- != 0) words_.close(target);
      return false;
    }
  }
  state_ ^= epoch_fence;
  return true;
}

void EpochRules::note_fence() {
  hot_at_fence_ = hot_traffic(views_).operations;
  issued_.store(false, std::memory_order_relaxed);
}

// Relaxed: see HotWindow::lock.
void EpochRules::settle_lockable() {
  words_.allow_locks(!is(epoch_freed) && !is(epoch_started) && (promises_ & promise_no_locks) == 0);
}

Status EpochRules::check_closed(const char* call, const WindowTexts& texts) const {
  const std::uint32_t held = is(epoch_all_locked) ? 0 : words_.locks_held();
  const auto refused = [&](std::string_view why) {
    return Status(Code::pending, fmt::format("{}: {}", texts.of_window(call), why));
  };
  if (is(epoch_all_locked)) return refused("farsum_lock_all is not undone; call farsum_unlock_all first");
  if (held != 0) return refused(fmt::format("{} locks are held; call farsum_unlock first", held));
  if (is(epoch_started)) return refused("an access epoch is open; call farsum_complete first");
  if (is(epoch_exposed)) return refused("an exposure epoch is open; call farsum_wait_exposure first");
  return {};
}

void EpochRules::close() {
  (void)set_fence(false);
  state_ |= epoch_freed;
  settle_lockable();
}

void EpochRules::abandon() {
  const EpochState started = state_ & epoch_started;
  state_ = static_cast<EpochState>(started | epoch_freed);
  settle_lockable();
}

}  // namespace farsum
