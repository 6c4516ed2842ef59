// Locks of all that are held without a visit of any (lockfree/lock_bias.hpp), and what becomes of them when a rank
// wants one of them for itself. Only in windows whose ranks share a node.
#include <optional>

#include "window/window.hpp"
#include "window/window_lock_visit.hpp"

namespace farsum {
// With sync_mutex_ held. The words of the targets come first: another thread that locks one of them exclusively goes by
// its queue, finds there that it may be held by bias, or that somebody has ended it, and either way comes behind this
// rank's word in the bias; and one that locks it shared has the same claim to it as this one.
bool Window::hold_all_by_bias() {
  LockBias bias = parts_.shared[parts_.my_rank].bias();
  if (!bias.is_offered() || !claim_all_words()) return false;
  std::uint64_t epoch = 0;
  const LockBias::Hold how = bias.hold(contender(), epoch);
  if (how == LockBias::Hold::held) {
    bias_epoch_ = epoch;
    offer_pace_.note_held();
    all_locked_ = true;
    return true;
  }
  if (how == LockBias::Hold::revoked) leave_all_locks();
  close_words_of_all(size_);
  return false;
}

// No guard orders threads that lock the same target meanwhile: one that has found the word free, and has yet to write
// it, overwrites what is written here. Both hold the target shared then, each in its own way; the word is that of who
// has locked the target alone, and free once that is unlocked.
bool Window::claim_all_words() {
  for (std::uint32_t target = 0; target < size_; ++target) {
    std::int32_t open = no_epoch;
    // Acquire pairs with the release in close_epoch, whatever thread that was on.
    if (views_[target].open.compare_exchange_strong(open, locked_with_all, std::memory_order_acquire,
                                                    std::memory_order_relaxed))
      continue;
    close_words_of_all(target);
    return false;
  }
  return true;
}

// Leaves the words of other epochs as they are. Release as in close_epoch.
void Window::close_words_of_all(std::uint32_t end) {
  for (std::uint32_t target = 0; target < end; ++target) {
    std::int32_t open = locked_with_all;
    views_[target].open.compare_exchange_strong(open, no_epoch, std::memory_order_release, std::memory_order_relaxed);
  }
}

// A failed flush leaves the locks held, as in unlock_here.
Status Window::unlock_all_by_bias(const char* call) {
  if (!hot().flush_all_before_unlock()) {
    if (Status flushed = flush_all(call); !flushed.is_ok()) return flushed;
  }
  drop_bias();
  return {};
}

void Window::drop_bias() {
  LockBias bias = parts_.shared[parts_.my_rank].bias();
  if (!bias.release(parts_.my_rank, bias_epoch_)) leave_all_locks();
  bias_epoch_ = 0;
  close_words_of_all(size_);
  all_locked_ = false;
}

// Who has ended the bias may have entered this rank in any of them. Another thread's lock stays: its word says so,
// which changes in one visit of the guard with the lock.
void Window::leave_all_locks() {
  for (std::uint32_t target = 0; target < size_; ++target) {
    const auto is_own = [&] {
      return holds_with_all(target) || views_[target].open.load(std::memory_order_relaxed) == no_epoch;
    };
    (void)with_lock(target, [&](auto& lock) { return lock.unlock(contender(), LockMode::shared, is_own); });
  }
}

// Called by a thread that has locked all, one by one.
void Window::offer_bias_at_times() {
  if (parts_.shared[parts_.my_rank].bias().exists() && offer_pace_.note_queued()) offer_bias();
}

void Window::offer_bias() {
  LockBias bias = parts_.shared[parts_.my_rank].bias();
  const std::optional<std::uint64_t> prepared = bias.prepare();
  if (!prepared) return;
  for (std::uint32_t target = 0; target < size_; ++target) {
    const bool is_allowed = with_lock(target, [&](auto& lock) { return lock.allow_bias(parts_.lock_agent.id); });
    if (!is_allowed) return bias.give_up(*prepared);
  }
  (void)bias.confirm(*prepared);
}

}  // namespace farsum
