// Members of a group of which nobody waits for the others: threads, each with a thread in its agent's stead, over
// blocks of memory, one a node, whose first ranks tell each other through mailboxes, or what is short by letters.
// Nobody looks without being woken.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "collectives/carry.hpp"
#include "collectives/letter_post.hpp"
#include "collectives/reductions.hpp"
#include "desk_roads.hpp"
#include "extents_of_test.hpp"
#include "mailboxes.hpp"
#include "sleeping_waiter.hpp"

namespace farsum {

using NodeOfRank = std::vector<std::uint32_t>;
using CarriedBytes = std::vector<std::byte>;

// Sleeps until it is rung or a letter comes.
class AgentOfTest {
 public:
  void ring() { events_.notify_all(); }
  // Takes no turns for as long, as where a thread that attends serves in its stead.
  void set_away(bool is_away) {
    const std::lock_guard lock(turn_);
    is_away_ = is_away;
  }
  EventCount& events() { return events_; }
  void serve(Carry& carry) {
    while (!is_stopped_) {
      const std::uint32_t key = events_.prepare();
      const Carry::Turn turn = take_turn(carry);
      if (turn.is_unfinished || turn.is_refused || is_stopped_)
        events_.cancel();
      else
        events_.wait(key, 0);
    }
  }
  void stop() {
    is_stopped_ = true;
    events_.notify_all();
  }

 private:
  Carry::Turn take_turn(Carry& carry) {
    const std::lock_guard lock(turn_);
    return is_away_ ? Carry::Turn{} : carry.take_turn(Carry::Folding::done);
  }

  EventCount events_;
  std::atomic<bool> is_stopped_{false};
  std::mutex turn_;  // guards what follows
  bool is_away_ = false;
};

// Where letters wake the agent in place of the thread that waits.
class AgentsWaiter : public SleepingWaiter {
 public:
  explicit AgentsWaiter(AgentOfTest& agent) : agent_(agent) {}
  EventCount& own_events() override { return agent_.events(); }

 private:
  AgentOfTest& agent_;
};

class HelpOfTest final : public CarryHelp {
 public:
  HelpOfTest(ExtentsOfTest& extents, std::vector<AgentOfTest*> here) : extents_(extents), here_(std::move(here)) {}
  Status allocate(std::uint64_t bytes, CarriedExtent& extent) override {
    if (is_full) return {Code::no_memory, "the test has no more"};
    extent = extents_.cut(bytes);
    const std::lock_guard lock(mutex_);
    own_.insert(extent.offset);
    return {};
  }
  void release(CarriedExtent extent) override { extents_.give_back(extent); }
  std::byte* reach(CarriedExtent extent) override {
    if (when_reaching) when_reaching();
    return can_reach || is_own(extent) ? reinterpret_cast<std::byte*>(extent.offset) : nullptr;
  }
  void ring(std::uint32_t member_here) override {
    ++rung;
    here_[member_here]->ring();
  }
  void hand_over() override { ++handed_over; }
  void count_under_way(int more) override {
    under_way += more;
    if (when_counting) when_counting();
  }

  // Set while no call is under way.
  std::function<void()> when_reaching;
  std::function<void()> when_counting;  // with the carry's mutex held
  std::atomic<int> rung{0};             // by this member
  std::atomic<int> handed_over{0};
  bool is_full = false;
  std::atomic<bool> can_reach{true};  // what others have cut
  std::atomic<int> under_way{0};

 private:
  bool is_own(CarriedExtent extent) {
    const std::lock_guard lock(mutex_);
    const auto behind = own_.upper_bound(extent.offset);
    return behind != own_.begin() && extent.offset - *std::prev(behind) < 1'000'000;
  }

  std::mutex mutex_;
  std::set<std::uint64_t> own_;  // where they begin
  ExtentsOfTest& extents_;
  std::vector<AgentOfTest*> here_;
};

struct CarryingMember {
  GroupTeam& team;
  GroupReductions& reductions;
  Carry& carry;
  HelpOfTest& help;
  AgentOfTest& agent;
  std::uint32_t rank;
  std::barrier<>& meeting;

  std::shared_ptr<CarriedRequest> begin(const CarriedCall& call, const std::byte* mine, std::byte* result) {
    auto request = std::make_shared<CarriedRequest>();
    request->call = call;
    request->mine = mine;
    request->result = result;
    EXPECT_TRUE(carry.begin(request, calls_before, "begin").is_ok());
    return request;
  }
  Status wait(CarriedRequest& request) {
    bool is_over = false;
    Status status = carry.wait(request, is_over, "wait");
    EXPECT_TRUE(is_over);
    return status;
  }

  std::uint64_t calls_before = 0;
};

enum class CarriedBy : std::uint8_t { mailboxes, letters };

struct CarryingOptions {
  CarriedBy by = CarriedBy::mailboxes;
  std::uint32_t degree = 0;  // of the tree between nodes, as of ReductionMeans
  ReduceOrder order = ReduceOrder::nodes;
  // Of letters: so many are on the road from a rank to another, and some find no memory.
  std::size_t letters_on_a_road = 3;
  std::uint64_t lacks_memory_once_in = 0;  // 0: never
};

class CarryingThreads {
 public:
  explicit CarryingThreads(NodeOfRank node_of, const CarryingOptions& options = {})
      : node_of_(std::move(node_of)), options_(options), agents_(node_of_.size()), roads_(node_of_.size()) {
    roads_.most = options.letters_on_a_road;
    roads_.lacks_memory_once_in = options.lacks_memory_once_in;
    for (const std::uint32_t node : node_of_) {
      const auto members = static_cast<std::uint32_t>(std::count(node_of_.begin(), node_of_.end(), node));
      blocks_[node].resize(GroupBlock::footprint(members) / 8 + 32);
      carried_[node].resize(CarriedBlock::footprint(members) / 8 + 32);
    }
  }
  int open_extents() const { return extents_.open(); }
  Mailboxes& boxes() { return boxes_; }
  std::uint64_t letters() const { return letters_; }
  void run(const std::function<void(CarryingMember)>& body) {
    std::deque<Desk> desks;
    for (Rank rank = 0; rank < node_of_.size(); ++rank) {
      desks.emplace_back(roads_, rank);
      roads_.be(rank, desks.back().desk, agents_[rank].events(), &agents_[rank].events());
    }
    std::atomic<bool> is_over{options_.by == CarriedBy::mailboxes};
    std::thread carrier([&] { carry_letters(is_over); });
    std::vector<std::thread> threads;
    std::barrier<> meeting(static_cast<std::ptrdiff_t>(node_of_.size()));
    for (std::uint32_t rank = 0; rank < node_of_.size(); ++rank)
      threads.emplace_back([&, rank] { be(rank, desks[rank].desk, meeting, body); });
    for (std::thread& thread : threads) thread.join();
    is_over = true;
    carrier.join();
    for (const Desk& one : desks) {
      letters_ += one.desk.sent();
      EXPECT_EQ(one.desk.refused(), 0u);
      EXPECT_EQ(one.desk.unknown(), 0u);
    }
  }

 private:
  static constexpr std::uint64_t team_name = 7;

  struct Desk {
    Desk(DeskRoads& roads, Rank me) : transport(roads, me), desk(transport, [] {}) {}
    TransportOnRoads transport;
    LetterDesk desk;
  };

  void carry_letters(const std::atomic<bool>& is_over) {
    SimRandom random(5);
    while (!is_over || roads_.carry_one(random)) {
      if (!roads_.carry_one(random)) std::this_thread::yield();
      roads_.retry();
    }
  }
  static std::byte* start_of(std::vector<std::uint64_t>& words) {
    return reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(words.data()), 2 * cache_line_bytes));
  }
  void be(std::uint32_t rank, LetterDesk& desk, std::barrier<>& meeting,
          const std::function<void(CarryingMember)>& body) {
    AgentsWaiter of_agent(agents_[rank]);
    SleepingWaiter waiter;
    Mailboxes& boxes = boxes_;
    Post carried_post(boxes, rank, of_agent);
    Post post(blocking_boxes_, rank, waiter);
    GroupTeam team(places_of(node_of_, node_of_[rank]), rank, &post, waiter);
    std::optional<LetterPost> letters;
    if (options_.by == CarriedBy::letters && team.is_first_here() && !team.places().is_one_node())
      letters.emplace(desk, carried_post, team.places(), LetterPost::Use::carried, of_agent.own_events(),
                      options_.degree);
    const ReductionMeans means = {
        .kernels = ops::kernels_for_this_machine(), .order = options_.order, .degree = options_.degree};
    GroupReductions reductions(team, rank, means, waiter);
    std::byte* const block = start_of(blocks_.at(node_of_[rank]));
    team.begin(*reinterpret_cast<NodeTeamBlock*>(block), team_name);
    reductions.begin(block);
    if (letters) letters->begin(team_name);
    meeting.arrive_and_wait();
    if (letters) letters->open();
    std::vector<AgentOfTest*> here;
    for (const std::uint32_t member : team.places().here) here.push_back(&agents_[member]);
    HelpOfTest help(extents_, here);
    TeamPost& post_of_carry = letters ? static_cast<TeamPost&>(*letters) : carried_post;
    Carry carry(
        {team, rank, ops::kernels_for_this_machine(), post_of_carry, waiter, help, options_.degree, options_.order});
    carry.open(start_of(carried_.at(node_of_[rank])));
    std::thread agent([&] { agents_[rank].serve(carry); });
    body({team, reductions, carry, help, agents_[rank], rank, meeting});
    meeting.arrive_and_wait();
    agents_[rank].stop();
    agent.join();
    meeting.arrive_and_wait();
    carry.give_back_kept();
    EXPECT_EQ(carry.open_requests(), 0);
    EXPECT_EQ(help.under_way, 0);
  }

  NodeOfRank node_of_;
  CarryingOptions options_;
  std::vector<AgentOfTest> agents_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> blocks_, carried_;
  ExtentsOfTest extents_;
  Mailboxes boxes_, blocking_boxes_;
  DeskRoads roads_;
  std::uint64_t letters_ = 0;
};
// Numbers whose sums depend on the order.
inline CarriedBytes doubles_of(std::uint32_t rank, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed * 1000 + rank);
  std::vector<double> numbers(count);
  for (double& number : numbers)
    number = std::ldexp(static_cast<double>(random() % 1000), static_cast<int>(random() % 100));
  CarriedBytes bytes(count * sizeof(double));
  if (count != 0) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}
inline CarriedCall carried_call_of(std::uint64_t kind, std::size_t count, std::uint32_t root) {
  CarriedCall call;
  call.kind = static_cast<CarriedCall::Kind>(kind);
  if (call.kind == CarriedCall::Kind::barrier) return call;
  call.type = ops::ElementType::float64;
  call.count = count;
  if (call.reduces()) call.op = ops::Operator::sum;
  if (call.kind == CarriedCall::Kind::broadcast || call.kind == CarriedCall::Kind::reduce) call.root = root;
  return call;
}

}  // namespace farsum
