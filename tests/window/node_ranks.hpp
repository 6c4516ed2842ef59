// Ranks of one node, each with the parts of a window that its epochs are made of, and no window. One thread plays all
// ranks: what happens while a rank waits, the test has said before.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mute_transport.hpp"
#include "window/all_locks.hpp"
#include "window/post_epochs.hpp"

namespace farsum {

// Takes the next step of a script for each look in vain.
class NodeWaiter final : public Waiter {
 public:
  void then(std::function<void()> step) { steps_.push_back(std::move(step)); }
  bool is_at_the_end() const { return steps_.empty(); }

  Status wait(EventCount&, FunctionRef<bool()> done, const char* doing) override {
    while (!done()) {
      if (steps_.empty()) return {Code::peer_failed, std::string(doing) + ": nothing happens any more"};
      const std::function<void()> step = std::move(steps_.front());
      steps_.pop_front();
      step();
    }
    return {};
  }
  Status wait_for_grant(LockGrant& grant, const char* doing) override {
    return wait(
        events_, [&] { return grant.has_come(); }, doing);
  }
  Status looked_in_vain(const char* doing) override {
    return somebody_is_dead ? Status(Code::peer_failed, std::string(doing) + ": a rank has died") : Status();
  }
  EventCount& own_events() override { return events_; }

  bool somebody_is_dead = false;

 private:
  std::deque<std::function<void()>> steps_;
  EventCount events_;
};

// What ranks of the node have in common: their parts of the shared memory, and the bias of their locks if there is one.
class SharedNode {
 public:
  SharedNode(std::uint32_t ranks, bool is_biased) : shape_{.ranks = ranks, .most_regions = 1, .locks = 3} {
    const std::size_t bias_bytes = is_biased ? LockBias::footprint(ranks) : 0;
    constexpr std::size_t alignment = alignof(SharedLockState);
    block_.resize(alignment + bias_bytes + ranks * shape_.rank_bytes());
    std::byte* at = block_.data();
    at += round_up(reinterpret_cast<std::uintptr_t>(at), alignment) - reinterpret_cast<std::uintptr_t>(at);
    const LockBias bias = is_biased ? LockBias(*reinterpret_cast<LockBiasState*>(at), ranks) : LockBias();
    at += bias_bytes;
    for (std::uint32_t rank = 0; rank < ranks; ++rank, at += shape_.rank_bytes()) {
      shared_.emplace_back(at, shape_, bias).begin_bias();
      ranks_.push_back(first_of_job + rank);
    }
  }

  std::uint32_t size() const { return shape_.ranks; }
  const std::vector<RankWindow>& shared() const { return shared_; }
  const std::vector<Rank>& ranks() const { return ranks_; }

  // What a rank that has no parts here does at a lock.
  static Contender contender(std::uint32_t rank) { return {rank + 1, rank}; }
  bool try_lock(std::uint32_t rank, std::uint32_t target, LockMode mode, std::uint32_t index = 0) const {
    return view(target, index).try_lock(contender(rank), mode);
  }
  Requested queue(std::uint32_t rank, std::uint32_t target, LockMode mode) const {
    return view(target).take_or_queue(contender(rank), mode, lock_word::waiting, [] { return true; });
  }
  bool unlock(std::uint32_t rank, std::uint32_t target, LockMode mode, std::uint32_t index = 0) const {
    return view(target, index).unlock(contender(rank), mode);
  }
  bool is_free(std::uint32_t target, std::uint32_t index = 0) const { return holders(target, index) == 0; }
  std::uint32_t holders(std::uint32_t target, std::uint32_t index = 0) const {
    std::uint32_t count = 0;
    view(target, index).for_each_holder([&](std::uint32_t, LockMode) { ++count; });
    return count;
  }
  SharedLock<HolderDead> view(std::uint32_t target, std::uint32_t index = 0) const {
    return shared_[target].lock_view(nullptr, index);
  }

  static constexpr Rank first_of_job = 10;  // the group's rank 0

 private:
  WindowSharedShape shape_;
  std::vector<std::byte> block_;
  std::vector<RankWindow> shared_;
  std::vector<Rank> ranks_;
};

struct NodeRankOptions {
  std::uint32_t promises = 0;
  const Liveness* liveness = nullptr;
  const Ringer* ringer = nullptr;
  bool defers = true;
};

// The parts of one rank, made as a window makes them.
class NodeRank {
 public:
  NodeRank(const SharedNode& node, std::uint32_t rank, const NodeRankOptions& options = {})
      : rank_(rank), size_(node.size()), options_(options), node_(node), sizes_(size_, 64), agent_(agent_of(options)) {
    for (std::uint32_t target = 0; target < size_; ++target) views[target].owner = node.ranks()[target];
  }

  // An operation at the target has failed, and nobody knows yet.
  void fail_at(std::uint32_t target) { messages_.note_failure(target, {Code::range, "it lies outside"}); }
  std::vector<std::int32_t> open_words() const {
    std::vector<std::int32_t> open;
    for (std::uint32_t target = 0; target < size_; ++target) open.push_back(words.of(target));
    return open;
  }
  // What each word is where all are alike.
  std::vector<std::int32_t> all_are(std::int32_t word) const { return std::vector<std::int32_t>(size_, word); }

 private:
  LockAgent agent_of(const NodeRankOptions& options) const {
    LockAgent agent;
    agent.id = rank_ + 1;
    agent.place = rank_;
    agent.liveness = options.liveness;
    agent.ringer = options.ringer;
    return agent;
  }

  OriginEngine::Options engine_options() const {
    OriginEngine::Options options;
    options.peers = SharedNode::first_of_job + std::size_t{size_};
    return options;
  }

  std::uint32_t rank_;
  std::uint32_t size_;
  NodeRankOptions options_;
  const SharedNode& node_;
  std::string name_;
  std::vector<std::uint64_t> sizes_;
  std::vector<RegionTable> told_;
  std::function<Region(Rank, const SharedRegion&)> make_;
  std::function<std::string(std::uint32_t, const Region&)> explain_;
  std::function<bool(const void*, std::uint64_t)> reach_;
  LockAgent agent_;
  MuteTransport transport_;
  OriginEngine engine_{engine_options(), transport_};

 public:
  // What a PostEpochs is told to do with an operation, and whom it has woken.
  std::function<Status(const Operation&, std::uint32_t target)> check = [](const Operation&, std::uint32_t) {
    return Status();
  };
  std::function<Status(const Operation&, std::uint32_t target)> carry_out = [](const Operation&, std::uint32_t) {
    return Status();
  };
  std::vector<Rank> woken;
  Hearing hearing;

  NodeWaiter waiter;
  std::unique_ptr<TargetView[]> views = std::make_unique<TargetView[]>(size_);
  std::unique_ptr<TargetState[]> states = std::make_unique<TargetState[]>(size_);
  WindowTexts texts{3, name_, node_.ranks(), options_.liveness};
  EpochWords words{views.get(), size_};
  EpochRules rules{words, {views.get(), size_}, options_.promises};

 private:
  HotParts hot_parts_{.size = size_, .lock_id = agent_.id, .agent = &agent_};
  RegionTables regions_{{.ranks = node_.ranks(),
                         .shared = node_.shared(),
                         .told = told_,
                         .agent = agent_,
                         .make = make_,
                         .explain = explain_,
                         .reach = reach_}};
  OperationChecks checks_{{.sizes = sizes_, .promises = options_.promises, .regions = regions_, .texts = texts}};
  OrderMarks order_{states.get(), size_};
  OwnerMessages messages_{{.window = 3,
                           .my_rank = rank_,
                           .ranks = node_.ranks(),
                           .engine = engine_,
                           .waiter = waiter,
                           .views = views.get(),
                           .texts = texts}};
  RemoteLocks remote_{{.messages = messages_,
                       .waiter = waiter,
                       .agent = agent_,
                       .ranks = node_.ranks(),
                       .states = states.get(),
                       .texts = texts}};
  Completions completions_{
      {.size = size_, .shared = node_.shared(), .messages = messages_, .locks = remote_, .order = order_}};
  std::function<void(Rank)> wake_rank_ = [this](Rank rank) { woken.push_back(rank); };

 public:
  LocalLocks local{
      {.ranks = node_.ranks(), .shared = node_.shared(), .agent = agent_, .waiter = waiter, .texts = texts}};
  TargetLocks locks{{.hot = {views.get(), hot_parts_},
                     .checks = checks_,
                     .texts = texts,
                     .words = words,
                     .rules = rules,
                     .local = local,
                     .remote = remote_,
                     .completions = completions_}};
  BiasedLocks biased{words, local, node_.shared()[rank_], rank_};
  AllLocks all{{.hot = {views.get(), hot_parts_},
                .my_rank = rank_,
                .remote_targets = {},
                .texts = texts,
                .words = words,
                .rules = rules,
                .local = local,
                .remote = remote_,
                .locks = locks,
                .biased = biased,
                .completions = completions_}};
  PostEpochs posts{
      {.window = 3,
       .my_rank = rank_,
       .defers = options_.defers,
       .ranks = node_.ranks(),
       .shared = node_.shared(),
       .wake_rank = wake_rank_,
       .checks = checks_,
       .texts = texts,
       .words = words,
       .rules = rules,
       .states = states.get(),
       .messages = messages_,
       .completions = completions_,
       .waiter = waiter,
       .hearing = &hearing,
       .check = [this](const Operation& operation, std::uint32_t target,
                       RegionRef&) { return check(operation, target); },
       .carry_out = [this](const Operation& operation, std::uint32_t target) { return carry_out(operation, target); }}};
};

inline testing::AssertionResult is_fine(const Status& status) {
  if (status.is_ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.text();
}

}  // namespace farsum
