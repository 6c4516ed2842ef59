#include "runtime/window_promotions.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "window/operation_checks.hpp"

namespace farsum {
namespace {

// Where memory that could not be turned back is tried again, while other windows are freed, the program's threads have
// so long to stop.
constexpr std::chrono::milliseconds retry_patience{50};

// Memory that was never touched is promised to whoever has promoted it, as the windows' is: of up to so much nobody
// asks how much there is. More than half of the room no promotion may take, for a program may never touch it, and
// others are to have windows.
constexpr std::size_t most_unasked_bytes = std::size_t{64} << 20;

// What this thread has computed, whoever else has had its processor.
std::uint64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

os::PromotionRules WindowPromotions::rules() const {
  os::PromotionRules rules;
  rules.least_pages = std::max<std::size_t>(parts_.settings.promote_least_bytes / page_bytes, 1);
  if (const pid_t agent = parts_.agent.thread_id(); agent != 0) rules.parked_threads = {agent};
  rules.may_hold_threads = parts_.settings.hold_threads != Permission::refuse;
  return rules;
}

std::string WindowPromotions::why_not(const WindowWish& wish, std::uint32_t promises, std::size_t members_here) const {
  if (members_here == 1) return "user memory, which no other rank of this node reaches";
  if (wish.bytes == 0 || (promises & promise_no_promotion) != 0) return "user memory";
  if (parts_.settings.promotion == PromotionChoice::refuse) return "user memory, FARSUM_PROMOTION=refuse";
  if (wish.unsure) return "user memory that need not be mapped";
  if (!wish.parts.empty()) return "user memory with pages that are not there";
  if (wish.read_only) return "read-only user memory";
  if (wish.bytes < parts_.settings.promote_least_bytes || parts_.node.segment().contains(wish.memory, 1))
    return "user memory, too small to promote";
  return {};
}

WindowPromotions::Moves WindowPromotions::ask_balance() {
  if (parts_.settings.promotion == PromotionChoice::always) return Moves::allowed;
  const MutexGuard lock(balance_mutex_);
  return balance_.is_spent(monotonic_ns()) ? Moves::too_dear : Moves::allowed;
}

void WindowPromotions::spared(std::uint64_t worth_ns) {
  const MutexGuard lock(balance_mutex_);
  balance_.spared(worth_ns);
}

// Moves the memory, or says why not. `cost` is what that has cost either way.
os::Promotion WindowPromotions::move(const WindowWish& wish, MoveCost& cost, std::string& refusal) {
  NodeSegment& segment = parts_.node.segment();
  const std::uint32_t me = parts_.node.id_in_segment();
  const std::uint64_t begun_ns = thread_cpu_ns();
  const os::Examination stretch = os::examine(wish.memory, wish.bytes, rules());
  cost.looked_ns = thread_cpu_ns() - begun_ns;
  if (!stretch.ok()) {
    refusal = fmt::format("user memory, not promoted: {}", stretch.refusal);
    return {};
  }
  if (parts_.exposures.overlaps(stretch.address, stretch.bytes)) {
    refusal = "user memory, not promoted: another window exposes it";
    return {};
  }
  const std::size_t untouched = stretch.bytes - stretch.touched_bytes;
  if (untouched > most_unasked_bytes && untouched > segment.room().bytes / 2) {
    refusal = "user memory, not promoted: more of it was never touched than half of what the node has left";
    return {};
  }
  Result<HeapExtent> extent = segment.allocate_for(stretch.address, stretch.bytes, stretch.touched_bytes, me);
  if (!extent.is_ok()) {
    refusal = "user memory, not promoted: no shared memory left";
    return {};
  }
  os::PromotionOutcome outcome;
  try {
    outcome = parts_.registry.promote(stretch, segment.fd(), extent.value().offset, rules());
  } catch (...) {
    segment.discard(extent.value(), me);
    throw;
  }
  if (!outcome.ok()) {
    segment.discard(extent.value(), me);
    refusal = fmt::format("user memory, not promoted: {}", outcome.refusal);
    return {};
  }
  cost.bytes = stretch.bytes;
  cost.touched_bytes = stretch.touched_bytes;
  return std::move(outcome.promotion);
}

os::Promotion WindowPromotions::promote(const WindowWish& wish, Moves moves, std::string& refusal) {
  // The agent serves nothing while memory moves under it.
  const auto parked = parts_.exposures.pause();
  // So that a window that goes can leave its promotion there.
  const std::size_t needed = kept_.size() + of_windows_ + 1;
  if (kept_.capacity() < needed) kept_.reserve(std::max(needed, 2 * kept_.capacity()));
  os::Promotion promotion = parts_.registry.share(wish.memory, wish.bytes);
  if (!promotion) {
    MoveCost cost;
    if (moves == Moves::too_dear) {
      refusal = "user memory, not promoted: windows carry less here than moving their memory costs";
      // It is counted as if it had been moved, so that the balance shows when that would pay.
      cost = {.bytes = wish.bytes, .touched_bytes = wish.bytes, .looked_ns = 0};
    } else {
      promotion = move(wish, cost, refusal);
    }
    const MutexGuard lock(balance_mutex_);
    balance_.moved(cost);
  }
  if (promotion) ++of_windows_;
  return promotion;
}

void WindowPromotions::turn_back(os::Promotion& promotion) {
  const auto parked = parts_.exposures.pause();
  if (promotion) {
    kept_.push_back(std::move(promotion));
    --of_windows_;
  }
  settle();
}

// Called with the exposures paused.
void WindowPromotions::settle() {
  const os::PromotionRules now = rules();
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    if (parts_.exposures.overlaps(kept->address(), kept->bytes())) {
      ++kept;
      continue;
    }
    // Whatever comes of it, the registry has it from here on.
    os::Promotion promotion = std::move(*kept);
    kept = kept_.erase(kept);
    discard(parts_.registry.release(promotion, now));
  }
}

void WindowPromotions::discard(const os::ReleaseOutcome& outcome) {
  if (outcome.extent_is_free())
    parts_.node.segment().discard({outcome.file_offset, outcome.bytes}, parts_.node.id_in_segment());
}

void WindowPromotions::retry_after_free() {
  {
    const MutexGuard lock(retries_mutex_);
    if (!retries_.is_due_after_free()) return;
  }
  const auto parked = parts_.exposures.pause();
  os::PromotionRules patient = rules();
  // Each may cost it, for nothing.
  patient.hold_patience = retry_patience;
  retry(patient);
}

void WindowPromotions::retry_at_end() {
  const auto parked = parts_.exposures.pause();
  retry(rules());
}

// Called with the exposures paused.
void WindowPromotions::retry(const os::PromotionRules& rules) {
  bool has_failed = false;
  for (const os::ReleaseOutcome& outcome : parts_.registry.retry_releases(rules)) {
    has_failed = has_failed || outcome.demotion == os::Demotion::kept;
    discard(outcome);
  }
  const MutexGuard lock(retries_mutex_);
  if (has_failed)
    retries_.failed();
  else
    retries_.succeeded();
}

}  // namespace farsum
