#include "window/post_epochs.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace farsum {

PostEpochs::PostEpochs(Needs needs)
    : needs_(std::move(needs)), of_targets_(std::make_unique<OfTarget[]>(needs_.words.size())) {}

// ---- post, start ----

Status PostEpochs::post(std::span<const std::uint32_t> origins) {
  const MutexGuard lock(needs_.rules.mutex());
  if (const char* const why = needs_.rules.why_not(EpochCall::post); why != nullptr)
    return needs_.texts.refuse("farsum_post", why);
  if (Status status = check_ranks("farsum_post", origins); !status.is_ok()) return status;
  needs_.rules.enter(EpochCall::post);
  completes_expected_ += origins.size();
  for (const std::uint32_t origin : origins) {
    if (!is_here(origin)) {
      if (Status sent = needs_.messages.tell(origin, wire::MessageKind::post); !sent.is_ok()) return sent;
      continue;
    }
    // Release: this rank's stores to its memory come before the post; pairs with the acquire load in are_more_than.
    needs_.shared[origin].posts()[needs_.my_rank].fetch_add(1, std::memory_order_release);
    needs_.wake_rank(needs_.ranks[origin]);
  }
  return {};
}

// Does not wait for the posts: with more ranks than processors a rank whose neighbour has not come to run yet would
// leave its processor idle, though it has work until its own rows are asked for (paper 2's automaton).
Status PostEpochs::start(std::span<const std::uint32_t> targets, Posts posts) {
  const MutexGuard lock(needs_.rules.mutex());
  if (Status status = check_ranks("farsum_start", targets); !status.is_ok()) return status;
  if (const char* const why = needs_.rules.make_way(EpochCall::start); why != nullptr)
    return needs_.texts.refuse("farsum_start", why);
  needs_.rules.enter(EpochCall::start);
  for (const std::uint32_t target : targets) {
    // Relaxed: for this thread, or for one that the program orders after it.
    if (posts == Posts::known || has_posted(target))
      begin_access(target);
    else
      needs_.states[target].awaits_post.store(true, std::memory_order_relaxed);
  }
  started_targets_.assign(targets.begin(), targets.end());
  return {};
}

// Every rank named, and each once.
Status PostEpochs::check_ranks(const char* call, std::span<const std::uint32_t> ranks) const {
  constexpr std::size_t most_compared = 16;  // beyond, a table of who was named costs less
  std::vector<bool> named(ranks.size() > most_compared ? size() : 0, false);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::uint32_t rank = ranks[i];
    if (Status status = needs_.checks.rank(call, rank); !status.is_ok()) return status;
    const auto before = ranks.first(i);
    if (named.empty() ? std::find(before.begin(), before.end(), rank) != before.end() : named[rank])
      return {Code::argument, fmt::format("{}: window {}: rank {} is listed twice", call, needs_.window, rank)};
    if (!named.empty()) named[rank] = true;
  }
  return {};
}

namespace {

// Acquire pairs with the releases in post and in TargetService::serve_epoch. Counters wrap: only the difference counts.
// It is negative where a start that did not look has used up a post whose message is still under way.
bool are_more_than(const std::atomic<std::uint32_t>& posts, std::uint32_t seen) {
  return static_cast<std::int32_t>(posts.load(std::memory_order_acquire) - seen) > 0;
}

}  // namespace

bool PostEpochs::has_posted(std::uint32_t target) const {
  return are_more_than(needs_.shared[needs_.my_rank].posts()[target], of_targets_[target].posts_seen);
}

// ---- operations before the post ----

namespace {

// What costs more memory waits for the post instead.
constexpr std::size_t most_deferred = 32;
constexpr std::size_t most_pieces_deferred = 256;

bool is_cheap_to_defer(const Operation& operation) {
  return operation.kind != OperationKind::compare_and_swap &&
         std::max({operation.target_layout.pieces().size(), operation.operand_layout.pieces().size(),
                   operation.result_layout.pieces().size()}) <= most_pieces_deferred;
}

}  // namespace

// The sides that the kind has no use for may be anything.
PostEpochs::Deferred::Deferred(const Operation& operation)
    : operation_(operation),
      operand_layout_(operation.operand_layout),
      target_layout_(operation.target_layout),
      result_layout_(operation.result_layout) {
  if (operation.alpha != nullptr) std::memcpy(alpha_, operation.alpha, ops::size_of(operation.type));
}

Operation PostEpochs::Deferred::operation() const {
  Operation operation = operation_;
  operation.operand_layout = operand_layout_.view();
  operation.target_layout = target_layout_.view();
  operation.result_layout = result_layout_.view();
  if (operation.alpha != nullptr) operation.alpha = alpha_;
  return operation;
}

PostEpochs::Kept PostEpochs::keep(const Operation& operation, std::uint32_t target) {
  OfTarget& of_target = of_targets_[target];
  const MutexGuard lock(of_target.mutex);
  // A dynamic window's regions are those that the target has attached before its post.
  if (!needs_.defers || !awaits_post(target) || has_posted(target) || of_target.deferred.size() == most_deferred ||
      !is_cheap_to_defer(operation))
    return {};
  RegionRef at;
  Status status = needs_.check(operation, target, at);
  if (status.is_ok()) of_target.deferred.emplace_back(operation);
  return status;
}

Status PostEpochs::await_post(std::uint32_t target, const char* call) {
  OfTarget& of_target = of_targets_[target];
  MutexLock lock(of_target.mutex);
  if (awaits_post(target) && !has_posted(target)) {
    const std::atomic<std::uint32_t>& posts = needs_.shared[needs_.my_rank].posts()[target];
    // Another thread may see the post first.
    const auto posted = [&, seen = of_target.posts_seen] { return are_more_than(posts, seen) || !awaits_post(target); };
    lock.unlock();
    if (Status status = needs_.waiter.wait(needs_.waiter.own_events(), posted, call); !status.is_ok()) return status;
    lock.lock();
  }
  if (!awaits_post(target)) return {};
  // The target says by it that it has done what it had to.
  if (needs_.hearing != nullptr) needs_.hearing->hear();
  // None is done twice, where one finds no memory.
  const std::vector<Deferred> all_deferred = std::exchange(of_target.deferred, {});
  Status first;
  for (const Deferred& deferred : all_deferred) {
    Status status = needs_.carry_out(deferred.operation(), target);
    if (first.is_ok()) first = std::move(status);
  }
  begin_access(target);
  return first;
}

// Its post will not come, or nobody waits for it any more: the epoch goes to its end without what was deferred.
void PostEpochs::give_up_post(std::uint32_t target) {
  const MutexGuard lock(of_targets_[target].mutex);
  if (!awaits_post(target)) return;
  of_targets_[target].deferred.clear();
  begin_access(target);
}

// Called with the target's mutex held, or by start.
void PostEpochs::begin_access(std::uint32_t target) {
  ++of_targets_[target].posts_seen;
  // Nobody else opens an epoch here: no lock was held, and none is taken since.
  (void)needs_.words.open(target, active_epoch);
  needs_.states[target].awaits_post.store(false, std::memory_order_release);
}

// ---- complete ----

Status PostEpochs::complete() {
  const MutexGuard lock(needs_.rules.mutex());
  if (const char* const why = needs_.rules.why_not(EpochCall::complete); why != nullptr)
    return needs_.texts.refuse("farsum_complete", why);
  Status failure;
  await_started_posts(failure);
  return failure.is_ok() ? end_access() : std::move(failure);
}

// Waits for the posts that were not there when the epoch began, without the mutex: another thread may have to post
// meanwhile.
void PostEpochs::await_started_posts(Status& failure) {
  for (auto target = first_awaited(); target && failure.is_ok(); target = first_awaited()) {
    {
      const MutexPause pause(needs_.rules.mutex());
      failure = await_post(*target, "farsum_complete");
    }
    // The failure has been told, as with a failed flush, and the next try ends the epoch.
    if (!failure.is_ok()) give_up_post(*target);
  }
}

std::optional<std::uint32_t> PostEpochs::first_awaited() const {
  const auto found = std::find_if(started_targets_.begin(), started_targets_.end(),
                                  [this](std::uint32_t target) { return awaits_post(target); });
  return found == started_targets_.end() ? std::nullopt : std::optional(*found);
}

// A failed operation of a target of this node leaves its epoch open, for the next try; at one of another node the end
// travels with the operations, and all are under way before one is waited for.
Status PostEpochs::end_access() {
  constexpr const char* call = "farsum_complete";
  Status first;
  const auto note = [&first](Status status) {
    if (first.is_ok()) first = std::move(status);
  };
  needs_.completions.settle_cards(call);
  std::vector<std::uint32_t> asked;
  for (const std::uint32_t target : started_targets_) {
    if (is_here(target) || !first.is_ok()) continue;
    // Room is made before anybody is asked, and only where a target is of another node, which is seldom.
    if (asked.empty()) asked.reserve(started_targets_.size());
    note(needs_.completions.ask_to_end(target, wire::MessageKind::complete, LockMode::shared));
    if (first.is_ok()) asked.push_back(target);
  }
  for (const std::uint32_t target : started_targets_) {
    if (is_here(target) && first.is_ok()) note(needs_.completions.flush(target, call));
  }
  const bool all_are_through = first.is_ok();
  for (const std::uint32_t target : asked) {
    note(needs_.completions.await_end(target, call));
    needs_.words.close(target);
    std::erase(started_targets_, target);
  }
  if (!all_are_through) return first;
  for (const std::uint32_t target : started_targets_) {
    needs_.words.close(target);
    // Release: the operations come before; pairs with the acquire load in has_completed.
    needs_.shared[target].head().completes.fetch_add(1, std::memory_order_release);
    needs_.wake_rank(needs_.ranks[target]);
  }
  needs_.rules.enter(EpochCall::complete);
  started_targets_.clear();
  return first;
}

void PostEpochs::abandon(const char* call) {
  for (std::uint32_t target = 0; target < size(); ++target) {
    if (awaits_post(target) && (!has_posted(target) || !await_post(target, call).is_ok())) give_up_post(target);
  }
  // Where no access epoch is open it says so. A second try: the failure that hindered the first has been told.
  if (!complete().is_ok()) (void)complete();
}

// ---- wait ----

// Acquire pairs with the releases in end_access and in TargetService::serve_epoch.
bool PostEpochs::has_completed(std::uint64_t expected) const {
  return needs_.shared[needs_.my_rank].head().completes.load(std::memory_order_acquire) >= expected;
}

Status PostEpochs::wait() {
  constexpr const char* call = "farsum_wait_exposure";
  MutexLock lock(needs_.rules.mutex());
  if (const char* const why = needs_.rules.why_not(EpochCall::wait); why != nullptr)
    return needs_.texts.refuse(call, why);
  const auto completed = [this, expected = completes_expected_] { return has_completed(expected); };
  if (!completed()) {
    // It waits without the mutex: another thread may have to complete an access epoch meanwhile.
    lock.unlock();
    Status status = needs_.waiter.wait(needs_.waiter.own_events(), completed, call);
    if (!status.is_ok()) return status;
    lock.lock();
  }
  needs_.rules.enter(EpochCall::wait);
  return {};
}

Status PostEpochs::test(bool& done) {
  const MutexGuard lock(needs_.rules.mutex());
  if (const char* const why = needs_.rules.why_not(EpochCall::wait); why != nullptr)
    return needs_.texts.refuse("farsum_test_exposure", why);
  done = has_completed(completes_expected_);
  if (!done) return needs_.waiter.looked_in_vain("farsum_test_exposure");
  needs_.rules.enter(EpochCall::wait);
  return {};
}

}  // namespace farsum
