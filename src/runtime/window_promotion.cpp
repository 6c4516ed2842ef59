// When adopted memory moves into the node segment, and when it turns back: never while the agent serves it or a rank of
// the window runs another runtime. How pages move is in src/promotion.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "runtime/window_creation.hpp"

namespace farsum {
namespace {

// Where memory that could not be turned back is tried again, while other windows are freed, the program's threads have
// so long to stop.
constexpr std::chrono::milliseconds retry_patience{50};
constexpr std::uint32_t most_frees_between_retries = 256;

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

os::PromotionRules Context::promotion_rules() const {
  os::PromotionRules rules;
  rules.least_pages = std::max<std::size_t>(options_.settings.promote_least_bytes / page_bytes, 1);
  if (const pid_t agent = agent_ == nullptr ? 0 : agent_->thread_id(); agent != 0) rules.parked_threads = {agent};
  rules.may_hold_threads = options_.settings.hold_threads != Permission::refuse;
  return rules;
}

// What is known without a look at the memory; empty where it may be promoted.
std::string Context::why_not_promoted(const Creation& wish, const WindowOptions& options,
                                      const GroupPlaces& places) const {
  if (places.here.size() == 1) return "user memory, which no other rank of this node reaches";
  if (wish.bytes == 0 || (options.promises & promise_no_promotion) != 0) return "user memory";
  if (options_.settings.promotion == PromotionChoice::refuse) return "user memory, FARSUM_PROMOTION=refuse";
  if (wish.unsure) return "user memory that need not be mapped";
  if (!wish.parts.empty()) return "user memory with pages that are not there";
  if (wish.read_only) return "read-only user memory";
  if (wish.bytes < options_.settings.promote_least_bytes || membership_.segment->contains(wish.memory, 1))
    return "user memory, too small to promote";
  return {};
}

Context::Moves Context::ask_balance() {
  if (options_.settings.promotion == PromotionChoice::always) return Moves::allowed;
  const std::lock_guard lock(balance_mutex_);
  return balance_.is_spent(monotonic_ns()) ? Moves::too_dear : Moves::allowed;
}

// What this rank has done to the others' parts, before it agrees that the window goes.
void Context::tell_traffic(WindowObject& object) {
  if (!object.counts_traffic) return;
  // It is told once: a window whose freeing is refused is seldom used again.
  object.counts_traffic = false;
  const Window::Parts& parts = object.window->parts();
  for (std::uint32_t target = 0; target < parts.ranks.size(); ++target) {
    if (target == parts.my_rank || !parts.shared[target].is_here()) continue;
    const Traffic traffic = object.window->traffic_to(target);
    if (traffic.operations == 0) continue;
    parts.shared[target].head().worth_ns.fetch_add(PromotionBalance::worth_ns(traffic.operations, traffic.bytes),
                                                   std::memory_order_relaxed);
  }
}

// Called when all ranks have told.
void Context::settle_balance(WindowObject& object) {
  if (!object.in_balance) return;
  const std::lock_guard lock(balance_mutex_);
  balance_.spared(object.own.head().worth_ns.load(std::memory_order_relaxed));
}

// Moves the memory, or says why not. `cost` is what that has cost either way.
bool Context::move_into_segment(const Creation& wish, WindowObject& object, MoveCost& cost, std::string& refusal) {
  NodeSegment& segment = *membership_.segment;
  const std::uint64_t begun_ns = thread_cpu_ns();
  const os::Examination stretch = os::examine(wish.memory, wish.bytes, promotion_rules());
  cost.looked_ns = thread_cpu_ns() - begun_ns;
  if (!stretch.ok()) {
    refusal = fmt::format("user memory, not promoted: {}", stretch.refusal);
    return false;
  }
  if (exposures_.overlaps(stretch.address, stretch.bytes)) {
    refusal = "user memory, not promoted: another window exposes it";
    return false;
  }
  const std::size_t untouched = stretch.bytes - stretch.touched_bytes;
  if (untouched > most_unasked_bytes && untouched > segment.room().bytes / 2) {
    refusal = "user memory, not promoted: more of it was never touched than half of what the node has left";
    return false;
  }
  Result<HeapExtent> extent =
      segment.allocate_for(stretch.address, stretch.bytes, stretch.touched_bytes, node_.id_in_segment());
  if (!extent.is_ok()) {
    refusal = "user memory, not promoted: no shared memory left";
    return false;
  }
  os::PromotionOutcome outcome;
  try {
    outcome = promotions_.promote(stretch, segment.fd(), extent.value().offset, promotion_rules());
  } catch (...) {
    segment.discard(extent.value(), node_.id_in_segment());
    throw;
  }
  if (!outcome.ok()) {
    segment.discard(extent.value(), node_.id_in_segment());
    refusal = fmt::format("user memory, not promoted: {}", outcome.refusal);
    return false;
  }
  object.promotion = std::move(outcome.promotion);
  cost.bytes = stretch.bytes;
  cost.touched_bytes = stretch.touched_bytes;
  return true;
}

bool Context::promote(const Creation& wish, Moves moves, WindowObject& object, std::vector<SharedRegion>& shared,
                      std::vector<ExposedRegion>& exposed, std::string& refusal) {
  // The agent serves nothing while memory moves under it.
  const auto parked = exposures_.pause();
  // So that a window that goes can leave its promotion there.
  const std::size_t needed = kept_promotions_.size() + promotions_of_windows_ + 1;
  if (kept_promotions_.capacity() < needed) kept_promotions_.reserve(std::max(needed, 2 * kept_promotions_.capacity()));
  object.in_balance = true;
  object.promotion = promotions_.share(wish.memory, wish.bytes);
  if (!object.promotion) {
    MoveCost cost;
    if (moves == Moves::too_dear) {
      refusal = "user memory, not promoted: windows carry less here than moving their memory costs";
      // It is counted as if it had been moved, so that the balance shows when that would pay.
      cost = {.bytes = wish.bytes, .touched_bytes = wish.bytes, .looked_ns = 0};
    } else {
      (void)move_into_segment(wish, object, cost, refusal);
    }
    const std::lock_guard lock(balance_mutex_);
    balance_.moved(cost);
  }
  if (!object.promotion) return false;
  ++promotions_of_windows_;
  const auto begin = reinterpret_cast<std::uintptr_t>(wish.memory);
  const std::uint64_t from = object.promotion.address() - begin;
  const std::uint64_t to = from + object.promotion.bytes();
  if (from != 0) describe_adopted(wish, 0, from, "edge of promoted user memory", shared, exposed);
  SharedRegion middle{from, to - from, object.promotion.address(), object.promotion.file_offset(), region_promoted,
                      0,    {}};
  set_note(middle, "promoted user memory");
  shared.push_back(middle);
  exposed.push_back({from, to - from, wish.memory + from, own_domain(wish.memory + from), false, false});
  if (to != wish.bytes) describe_adopted(wish, to, wish.bytes, "edge of promoted user memory", shared, exposed);
  return true;
}

void Context::demote(WindowObject& object) {
  const auto parked = exposures_.pause();
  if (object.promotion) {
    kept_promotions_.push_back(std::move(object.promotion));
    --promotions_of_windows_;
  }
  settle_promotions();
}

// Turns back the memory of a window that all ranks have agreed to free: between two meetings each rank of this node is
// in here and none runs another runtime, as in make_window. Where one has left a circle, which all see alike, the
// memory turns back when the window departs.
void Context::demote_in_quiet(WindowObject& object, const char* call) {
  ThreadWaiter::Quiet quiet(*waiter_);
  quiet.begin();
  const bool has_circles = object.group->places().is_one_node();
  const auto meet = [&](Teardown::Answer& answer) {
    return has_circles ? object.teardown->agree(Code::ok, *circle_, call, answer) : object.team->node().barrier(call);
  };
  Teardown::Answer answer;
  // What fails here is the wait for a rank that has died, which every later wait tells.
  if (!meet(answer).is_ok()) return;
  object.left_circle = !answer.all_came;
  if (!answer.all_came || answer.some_left) return;
  exposures_.erase(object.window->parts().id);
  try {
    if (object.group->places().here.size() == membership_.here.count()) retry_some_kept();
    demote(object);
  } catch (const std::bad_alloc&) {
    // Turned back with a later window; the others wait.
  }
  (void)meet(answer);
}

void Context::retry_some_kept() {
  if (--frees_until_retry_ != 0) return;
  frees_until_retry_ = frees_between_retries_;
  const auto parked = exposures_.pause();
  os::PromotionRules rules = promotion_rules();
  // Each may cost it, for nothing.
  rules.hold_patience = retry_patience;
  retry_kept(rules);
}

// Called at the end, when no window serves any more.
void Context::demote_all() {
  for (const std::unique_ptr<WindowObject>& object : windows_) exposures_.erase(object->window->parts().id);
  for (const std::unique_ptr<WindowObject>& object : windows_) demote(*object);
  for (const std::unique_ptr<WindowObject>& object : left_circles_) demote(*object);
  const auto parked = exposures_.pause();
  retry_kept(promotion_rules());
}

// Turns back what no window exposes any more; the rest waits for the next promoted window to go. Peers have stopped
// using the windows gone. Called with the exposures paused.
void Context::settle_promotions() {
  const os::PromotionRules rules = promotion_rules();
  for (auto kept = kept_promotions_.begin(); kept != kept_promotions_.end();) {
    if (exposures_.overlaps(kept->address(), kept->bytes())) {
      ++kept;
      continue;
    }
    // Whatever comes of it, the registry has it from here on.
    os::Promotion promotion = std::move(*kept);
    kept = kept_promotions_.erase(kept);
    const os::ReleaseOutcome outcome = promotions_.release(promotion, rules);
    if (outcome.extent_is_free())
      membership_.segment->discard({outcome.file_offset, outcome.bytes}, node_.id_in_segment());
  }
}

// Tries once more what could not be turned back, and if that fails again, after twice as many frees. Called with the
// exposures paused.
void Context::retry_kept(const os::PromotionRules& rules) {
  bool has_failed = false;
  for (const os::ReleaseOutcome& outcome : promotions_.retry_releases(rules)) {
    has_failed = has_failed || outcome.demotion == os::Demotion::kept;
    if (outcome.extent_is_free())
      membership_.segment->discard({outcome.file_offset, outcome.bytes}, node_.id_in_segment());
  }
  frees_between_retries_ = has_failed ? std::min(2 * frees_between_retries_, most_frees_between_retries) : 1;
  frees_until_retry_ = frees_between_retries_;
}

}  // namespace farsum
