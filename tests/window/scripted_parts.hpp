// What the parts of a window stand on that speak with owners, where the test is the network and the owners, and says
// what happens while somebody waits. There is no window and no other rank.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "progress/waiter.hpp"
#include "protocol/messages.hpp"
#include "protocol/scripted_transport.hpp"
#include "window/asked_locks.hpp"
#include "window/owner_messages.hpp"
#include "window/remote_locks.hpp"
#include "window/target_state.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// A wait is over when done() holds. Until then one thing after the other happens of those that the test has named;
// where there is none left it fails, as it does where a rank has died.
class ScriptedWaiter final : public Waiter {
 public:
  ScriptedWaiter& then(std::function<void()> happens) {
    next_.push_back(std::move(happens));
    return *this;
  }
  bool is_through() const { return next_.empty(); }

  Status wait(EventCount&, FunctionRef<bool()> done, const char* doing) override {
    ++waits;
    while (!done()) {
      if (next_.empty()) return {Code::peer_failed, std::string(doing) + ": nothing happens any more"};
      const std::function<void()> happens = std::move(next_.front());
      next_.pop_front();
      happens();
    }
    // A thread that was woken twice looks twice.
    EXPECT_TRUE(done()) << doing;
    return {};
  }
  void note_come() override { ++times_come; }
  Status wait_for_grant(LockGrant& grant, const char* doing) override {
    return wait(
        events_, [&] { return grant.has_come(); }, doing);
  }
  Status looked_in_vain(const char* doing) override {
    if (is_over) return {Code::peer_failed, std::string(doing) + ": the job is over"};
    return {};
  }
  EventCount& own_events() override { return events_; }

  int waits = 0;
  int times_come = 0;
  bool is_over = false;

 private:
  std::deque<std::function<void()>> next_;
  EventCount events_;
};

// One rank of the job may be dead.
class ScriptedDeath final : public Liveness {
 public:
  bool is_dead(std::uint32_t rank) const override { return rank == dead; }
  std::uint32_t declare_dead(std::uint32_t rank) const override { return rank; }
  std::uint32_t dead = ~0u;
};

// Window 9 of three ranks, 5, 3 and 6 of the job, as the first of them sees it.
struct ScriptedParts {
  static constexpr std::uint32_t here = 0, there = 1, beyond = 2;
  // So many messages wait for room.
  static constexpr std::size_t backlog = 2;

  static OriginEngine::Options engine_options() {
    OriginEngine::Options options;
    options.peers = 8;
    options.backlog = backlog;
    return options;
  }

  // What was posted to the owners of `there` and `beyond`, as it left.
  wire::MessageHeader header(std::size_t index) const {
    wire::MessageHeader read;
    std::memcpy(&read, transport.posted.at(index).bytes.data(), sizeof read);
    return read;
  }
  std::vector<wire::MessageKind> kinds() const {
    std::vector<wire::MessageKind> all;
    for (std::size_t i = 0; i < transport.posted.size(); ++i) all.push_back(header(i).kind);
    return all;
  }
  std::vector<std::uint64_t> offsets() const {
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < transport.posted.size(); ++i) all.push_back(header(i).offset);
    return all;
  }

  // An owner answers the message with this number, counted per owner from 0.
  void answer(std::uint64_t number, Code code = Code::ok, Bytes bytes = {}) {
    answer(there, number, code, std::move(bytes));
  }
  void answer(std::uint32_t target, std::uint64_t number, Code code, Bytes bytes = {}) {
    transport.replies[ranks[target]].push_back({number, code, std::move(bytes)});
  }
  Outstanding& outstanding(std::uint32_t target = there) { return views[target].outstanding; }

  static Operation put(const Bytes& data, std::uint64_t offset = 0) {
    Operation operation;
    operation.offset = offset;
    operation.bytes = data.size();
    operation.operand = data.data();
    operation.operand_layout = operation.target_layout = ops::LayoutView::contiguous(data.size());
    return operation;
  }
  static Operation get(Bytes& into, std::uint64_t offset = 0) {
    Operation operation;
    operation.kind = OperationKind::get;
    operation.offset = offset;
    operation.bytes = into.size();
    operation.result = into.data();
    operation.result_layout = operation.target_layout = ops::LayoutView::contiguous(into.size());
    return operation;
  }
  static Operation sum(const std::uint64_t& value, std::uint64_t offset = 0) {
    Operation operation;
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::uint64;
    operation.op = ops::Operator::sum;
    operation.offset = offset;
    operation.bytes = sizeof value;
    operation.operand = reinterpret_cast<const std::byte*>(&value);
    operation.operand_layout = operation.target_layout = ops::LayoutView::contiguous(sizeof value);
    return operation;
  }

  Scripted transport;
  OriginEngine engine{engine_options(), transport};
  ScriptedWaiter waiter;
  ScriptedDeath death;
  std::string name;
  std::vector<Rank> ranks = {5, peer, 6};
  std::array<TargetView, 3> views;
  std::array<TargetState, 3> states;
  AskedLocks asked;
  LockAgent agent{.id = 6, .liveness = &death, .asked = &asked};
  WindowTexts texts{window, name, ranks, &death};
  OwnerMessages messages{{.window = window,
                          .my_rank = here,
                          .ranks = ranks,
                          .engine = engine,
                          .waiter = waiter,
                          .views = views.data(),
                          .texts = texts}};
  RemoteLocks locks{{.messages = messages,
                     .waiter = waiter,
                     .agent = agent,
                     .ranks = ranks,
                     .states = states.data(),
                     .texts = texts}};
};

}  // namespace farsum
