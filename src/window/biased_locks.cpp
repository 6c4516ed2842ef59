#include "window/biased_locks.hpp"

#include <optional>

namespace farsum {

// The words of the targets come first: another thread that locks one of them exclusively goes by its queue, finds there
// that it may be held by bias, or that somebody has ended it, and either way comes behind this rank's word in the bias;
// and one that locks it shared has the same claim to it as this one.
bool BiasedLocks::hold() {
  if (!bias().is_offered() || !words_.open_with_all()) return false;
  std::uint64_t epoch = 0;
  const LockBias::Hold how = bias().hold(locks_.contender(), epoch);
  if (how == LockBias::Hold::held) {
    epoch_ = epoch;
    pace_.note_held();
    return true;
  }
  if (how == LockBias::Hold::revoked) leave_all();
  words_.close_with_all(words_.size());
  return false;
}

void BiasedLocks::drop() {
  if (!bias().release(my_rank_, epoch_)) leave_all();
  epoch_ = 0;
  words_.close_with_all(words_.size());
}

// Who has ended the bias may have entered this rank in any of them. Another thread's lock stays: its word says so,
// which changes in one visit of the guard with the lock.
void BiasedLocks::leave_all() {
  for (std::uint32_t target = 0; target < words_.size(); ++target) {
    const auto is_own = [&] { return words_.is_with_all(target) || words_.of(target) == no_epoch; };
    (void)locks_.visit(target, [&](auto& lock) { return lock.unlock(locks_.contender(), LockMode::shared, is_own); });
  }
}

void BiasedLocks::note_locked_one_by_one() {
  if (bias().exists() && pace_.note_queued()) offer();
}

void BiasedLocks::offer() {
  LockBias bias = this->bias();
  const std::optional<std::uint64_t> prepared = bias.prepare();
  if (!prepared) return;
  for (std::uint32_t target = 0; target < words_.size(); ++target) {
    const bool is_allowed = locks_.visit(target, [&](auto& lock) { return lock.allow_bias(locks_.agent().id); });
    if (!is_allowed) return bias.give_up(*prepared);
  }
  (void)bias.confirm(*prepared);
}

}  // namespace farsum
