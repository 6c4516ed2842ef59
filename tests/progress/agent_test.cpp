// When an agent takes a turn.
#include "progress/agent.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "fake_network.hpp"
#include "no_requests.hpp"
#include "transport/shm/node_segment.hpp"
#include "transport/shm/shm_transport.hpp"

namespace {
// By all threads but the first: the one that waits for the agent yields, too.
std::atomic<std::uint32_t> yields{0};
}  // namespace

// In place of the C library's.
extern "C" int sched_yield() noexcept {
  if (gettid() != getpid()) ++yields;
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace farsum::test {
namespace {

class CountingChores final : public AgentChores {
 public:
  explicit CountingChores(std::uint64_t within_ns) : within_ns_(within_ns) {}
  std::uint64_t run(bool) override {
    ++turns_;
    turns_.notify_all();
    return within_ns_;
  }
  std::uint32_t turns() const { return turns_; }
  void await_more_than(std::uint32_t turns) {
    for (std::uint32_t seen = turns_; seen <= turns; seen = turns_) turns_.wait(seen);
  }

 private:
  std::uint64_t within_ns_;
  std::atomic<std::uint32_t> turns_{0};
};

// Rank 1 of two has an agent; rank 0 rings it.
struct Node {
  explicit Node(AgentMode mode = AgentMode::sleep, std::uint64_t within_ns = 0, bool is_crowded = false)
      : chores(within_ns) {
    Result<std::unique_ptr<NodeSegment>> made = NodeSegment::create({.ranks = 2, .segment_bytes = 64 << 20});
    EXPECT_TRUE(made.is_ok()) << made.take_status().text();
    segment = std::move(made.value());
    ringer = std::make_unique<ShmTransport>(*segment, ShmTransport::Options{.rank = 0});
    transport = std::make_unique<ShmTransport>(*segment, ShmTransport::Options{.rank = 1});
    bell = std::make_unique<RankBell>(segment->rank(1).doorbell, transport->wake_name(1));
    Result<std::unique_ptr<Agent>> started =
        Agent::start({.mode = mode, .nice = 0, .cpus = {}, .start_cpus = {}, .is_crowded = is_crowded}, *transport,
                     handler, *bell, chores, serving);
    EXPECT_TRUE(started.is_ok()) << started.take_status().text();
    agent = std::move(started.value());
  }

  NoRequests handler;
  ServingMutex serving;
  CountingChores chores;
  FakeNetwork network;
  std::unique_ptr<NodeSegment> segment;
  std::unique_ptr<ShmTransport> ringer;
  std::unique_ptr<ShmTransport> transport;
  std::unique_ptr<RankBell> bell;
  std::unique_ptr<Agent> agent;
};

void expect_a_turn_for_each_ring(Node& node) {
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t before = node.chores.turns();
    node.ringer->ring(1);
    node.chores.await_more_than(before);
  }
}

TEST(AgentTurn, follows_a_ring) {
  Node node;
  expect_a_turn_for_each_ring(node);
}

TEST(AgentTurn, follows_a_ring_where_the_agent_sleeps_on_a_network) {
  Node node;
  ASSERT_TRUE(node.bell->add_network(node.network).is_ok());
  expect_a_turn_for_each_ring(node);
}

TEST(AgentTurn, comes_by_itself_where_the_chores_ask_for_it) {
  Node node(AgentMode::sleep, 1);
  node.chores.await_more_than(10);
}

TEST(AgentTurn, of_a_dedicated_agent_comes_for_ever) {
  Node node(AgentMode::dedicated);
  ASSERT_TRUE(node.bell->add_network(node.network).is_ok());
  node.chores.await_more_than(10);
}

TEST(AgentTurn, of_a_dedicated_agent_lets_others_run_now_and_then_where_the_node_is_crowded) {
  for (const bool is_crowded : {false, true}) {
    const std::uint32_t before = yields;
    Node node(AgentMode::dedicated, 0, is_crowded);
    node.chores.await_more_than(3 * Agent::idle_turns_before_yield);
    node.agent.reset();
    EXPECT_EQ(yields != before, is_crowded);
  }
}

TEST(AgentTurn, ends_with_the_agent_however_it_sleeps) {
  { const Node node; }
  Node node;
  ASSERT_TRUE(node.bell->add_network(node.network).is_ok());
  node.agent.reset();
}

}  // namespace
}  // namespace farsum::test
