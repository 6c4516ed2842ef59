// Collectives that nobody waits for: threads as members, each with a thread in its agent's stead, over blocks of
// memory, one a node, whose first ranks tell each other through mailboxes. Nobody looks without being woken.
#include "collectives/carry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <iterator>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collectives/fold.hpp"
#include "collectives/reductions.hpp"
#include "mailboxes.hpp"
#include "sleeping_waiter.hpp"

namespace farsum {
namespace {

using NodeOfRank = std::vector<std::uint32_t>;
using CarriedBytes = std::vector<std::byte>;

// Extents that all members see; how many are not given back.
class ExtentsOfTest {
 public:
  CarriedExtent cut(std::uint64_t bytes) {
    const std::uint64_t whole = round_up(bytes, 64);
    void* const memory = ::operator new (whole, std::align_val_t{64});
    std::memset(memory, 0, whole);
    ++open_;
    return {reinterpret_cast<std::uintptr_t>(memory), whole};
  }
  void give_back(CarriedExtent extent) {
    ::operator delete (reinterpret_cast<void*>(extent.offset), std::align_val_t{64});
    --open_;
  }
  int open() const { return open_; }

 private:
  std::atomic<int> open_{0};
};

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
  void hand_over() override {}
  void count_under_way(int more) override {
    under_way += more;
    if (when_counting) when_counting();
  }

  // Set while no call is under way.
  std::function<void()> when_reaching;
  std::function<void()> when_counting;  // with the carry's mutex held
  std::atomic<int> rung{0};             // by this member
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

class CarryingThreads {
 public:
  // `degree` is that of the tree between nodes, as of ReductionMeans.
  explicit CarryingThreads(NodeOfRank node_of, std::uint32_t degree = 0)
      : node_of_(std::move(node_of)), degree_(degree), agents_(node_of_.size()) {
    for (const std::uint32_t node : node_of_) {
      const auto members = static_cast<std::uint32_t>(std::count(node_of_.begin(), node_of_.end(), node));
      blocks_[node].resize(GroupBlock::footprint(members) / 8 + 32);
      carried_[node].resize(CarriedBlock::footprint(members) / 8 + 32);
    }
  }
  int open_extents() const { return extents_.open(); }
  Mailboxes& boxes() { return boxes_; }
  void run(const std::function<void(CarryingMember)>& body) {
    std::vector<std::thread> threads;
    std::barrier<> meeting(static_cast<std::ptrdiff_t>(node_of_.size()));
    for (std::uint32_t rank = 0; rank < node_of_.size(); ++rank)
      threads.emplace_back([&, rank] { be(rank, meeting, body); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  static std::byte* start_of(std::vector<std::uint64_t>& words) {
    return reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(words.data()), 2 * cache_line_bytes));
  }
  void be(std::uint32_t rank, std::barrier<>& meeting, const std::function<void(CarryingMember)>& body) {
    AgentsWaiter of_agent(agents_[rank]);
    SleepingWaiter waiter;
    Mailboxes& boxes = boxes_;
    Post carried_post(boxes, rank, of_agent);
    Post post(blocking_boxes_, rank, waiter);
    GroupTeam team(places_of(node_of_, node_of_[rank]), rank, &post, waiter);
    const ReductionMeans means = {.kernels = ops::kernels_for_this_machine(), .degree = degree_};
    GroupReductions reductions(team, rank, means, waiter);
    std::byte* const block = start_of(blocks_.at(node_of_[rank]));
    team.begin(*reinterpret_cast<NodeTeamBlock*>(block), 7);
    reductions.begin(block);
    std::vector<AgentOfTest*> here;
    for (const std::uint32_t member : team.places().here) here.push_back(&agents_[member]);
    HelpOfTest help(extents_, here);
    Carry carry({team, rank, ops::kernels_for_this_machine(), carried_post, waiter, help, degree_});
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
  std::uint32_t degree_;
  std::vector<AgentOfTest> agents_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> blocks_, carried_;
  ExtentsOfTest extents_;
  Mailboxes boxes_, blocking_boxes_;
};

const std::vector<NodeOfRank>& layouts_to_carry() {
  static const std::vector<NodeOfRank> layouts = [] {
    std::vector<NodeOfRank> all = {{0}, {0, 0}, {0, 0, 0, 0, 0}, {0, 1}, {0, 1, 1, 0, 2, 0}, {3, 2, 1, 0, 3}};
    NodeOfRank many(15);
    std::iota(many.begin(), many.end(), 0u);
    many.push_back(2);
    all.push_back(many);
    return all;
  }();
  return layouts;
}

// Numbers whose sums depend on the order.
CarriedBytes doubles_of(std::uint32_t rank, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed * 1000 + rank);
  std::vector<double> numbers(count);
  for (double& number : numbers)
    number = std::ldexp(static_cast<double>(random() % 1000), static_cast<int>(random() % 100));
  CarriedBytes bytes(count * sizeof(double));
  if (count != 0) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// What the blocking call gives this rank.
CarriedBytes blocking_answer(CarryingMember& member, const CarriedCall& call, CarriedBytes mine) {
  const std::uint32_t size = member.team.size();
  CarriedBytes result(call.share_of(member.rank, size).bytes);
  using Kind = CarriedCall::Kind;
  Status status;
  if (call.kind == Kind::barrier) {
    status = member.team.barrier("barrier");
  } else if (call.kind == Kind::allgather) {
    status = member.team.allgather(mine, result, "allgather");
  } else if (call.kind == Kind::broadcast) {
    mine.resize(call.bytes());
    status = member.team.broadcast(mine, call.root, "broadcast");
    if (member.rank != call.root) result = mine;
  } else {
    const auto kind =
        static_cast<GroupReduction::Kind>(static_cast<int>(call.kind) - static_cast<int>(Kind::allreduce));
    status = member.reductions.run(
        {kind, call.type, call.op, call.root, call.count, mine.data(), result.empty() ? nullptr : result.data()},
        "run");
  }
  EXPECT_TRUE(status.is_ok()) << status.text();
  return result;
}

CarriedCall carried_call_of(std::uint64_t kind, std::size_t count, std::uint32_t root) {
  CarriedCall call;
  call.kind = static_cast<CarriedCall::Kind>(kind);
  if (call.kind == CarriedCall::Kind::barrier) return call;
  call.type = ops::ElementType::float64;
  call.count = count;
  if (call.reduces()) call.op = ops::Operator::sum;
  if (call.kind == CarriedCall::Kind::broadcast || call.kind == CarriedCall::Kind::reduce) call.root = root;
  return call;
}

class Carrying : public testing::TestWithParam<std::size_t> {
 protected:
  const NodeOfRank& layout() const { return layouts_to_carry()[GetParam()]; }
};

void carry_and_compare(CarryingMember member, const std::vector<std::size_t>& counts) {
  const std::uint32_t size = member.team.size();
  std::uint64_t seed = 0;
  for (const std::size_t count : counts) {
    for (std::uint64_t kind = 0; kind < CarriedCall::kinds; ++kind) {
      const CarriedCall call = carried_call_of(kind, count, static_cast<std::uint32_t>(++seed % size));
      const std::size_t elements = call.part_bytes(member.rank, size) / sizeof(double);
      const CarriedBytes mine = doubles_of(member.rank, elements, seed);
      CarriedBytes result(call.share_of(member.rank, size).bytes);
      const auto request = member.begin(call, mine.data(), result.data());
      ASSERT_TRUE(member.wait(*request).is_ok());
      ASSERT_EQ(result, blocking_answer(member, call, mine)) << "kind " << kind << " of " << count;
    }
  }
}

TEST_P(Carrying, gives_each_rank_the_bits_of_the_blocking_call) {
  CarryingThreads threads(layout());
  threads.run([](CarryingMember member) { carry_and_compare(member, {0, 1, 16, 31, 33, 129, 5'000, 70'001}); });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST(Carry, gives_the_bits_of_the_blocking_call_in_a_tree_of_any_degree) {
  for (const std::uint32_t degree : {2U, 3U, 4U, 8U}) {
    for (const std::uint32_t nodes : {2U, 7U, 13U}) {
      NodeOfRank node_of(nodes);
      std::iota(node_of.begin(), node_of.end(), 0u);
      node_of.push_back(nodes / 2);
      CarryingThreads threads(node_of, degree);
      threads.run([](CarryingMember member) { carry_and_compare(member, {0, 1, 33, 5'000}); });
      EXPECT_EQ(threads.open_extents(), 0);
    }
  }
}

TEST_P(Carrying, goes_on_with_more_calls_than_places_that_are_waited_for_from_the_last) {
  CarryingThreads threads(layout());
  threads.run([](CarryingMember member) {
    const std::uint32_t size = member.team.size();
    struct Begun {
      CarriedCall call;
      CarriedBytes mine, result;
      std::shared_ptr<CarriedRequest> request;
    };
    for (std::uint64_t round = 0; round < 4; ++round) {
      std::vector<Begun> all(CarriedPlace::most_under_way + 5);
      for (std::uint64_t i = 0; i < all.size(); ++i) {
        Begun& one = all[i];
        one.call = carried_call_of((i + round) % CarriedCall::kinds, i % 3 == 0 ? 40'000 : i,
                                   static_cast<std::uint32_t>(i % size));
        one.mine = doubles_of(member.rank, one.call.part_bytes(member.rank, size) / sizeof(double), i);
        CarriedBytes lent = one.mine;
        one.result.resize(one.call.share_of(member.rank, size).bytes);
        one.request = member.begin(one.call, lent.data(), one.result.data());
        std::fill(lent.begin(), lent.end(), std::byte{0xff});  // it may be reused
      }
      for (std::size_t i = all.size(); i-- > 0;) {
        EXPECT_TRUE(member.wait(*all[i].request).is_ok());
      }
      for (Begun& one : all) ASSERT_EQ(one.result, blocking_answer(member, one.call, one.mine));
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// All but the last rank's program do nothing from when they have begun.
TEST_P(Carrying, needs_the_program_of_no_rank_that_has_begun) {
  CarryingThreads threads(layout());
  threads.run([](CarryingMember member) {
    const std::uint32_t size = member.team.size();
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    std::vector<CarriedBytes> results;
    const std::size_t count = 40'000;
    const CarriedBytes mine = doubles_of(member.rank, count, 1);
    for (std::uint64_t i = 0; i < 2 * CarriedPlace::most_under_way + 3; ++i) {
      results.emplace_back(count * sizeof(double));
      const CarriedCall call = carried_call_of(3, i % 2 == 0 ? 3 : count, 0);
      requests.push_back(member.begin(call, mine.data(), results.back().data()));
    }
    if (member.rank + 1 == size) {
      EXPECT_TRUE(member.wait(*requests.back()).is_ok());
    }
    member.meeting.arrive_and_wait();
    for (auto& request : requests) {
      bool is_over = member.rank + 1 == size && request == requests.back();
      if (!is_over) {
        EXPECT_TRUE(member.carry.wait(*request, is_over, "wait").is_ok());
      }
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST_P(Carrying, tells_all_ranks_what_differs_and_goes_on) {
  if (layout().size() == 1) GTEST_SKIP() << "there is nobody who could differ";
  CarryingThreads threads(layout());
  threads.run([](CarryingMember member) {
    const std::uint32_t size = member.team.size();
    const std::uint32_t last = size - 1;
    const auto run = [&](CarriedCall call, std::uint64_t before) {
      const CarriedBytes mine = doubles_of(member.rank, 100'000, 3);
      CarriedBytes result(call.share_of(member.rank, size).bytes, std::byte{7});
      const CarriedBytes untouched = result;
      CarryingMember caller = member;
      caller.calls_before = before;
      Status status = caller.wait(*caller.begin(call, mine.data(), result.data()));
      if (!status.is_ok()) {
        EXPECT_EQ(result, untouched);
      }
      return status;
    };
    const bool differs = member.rank == last;
    for (const std::size_t count : {1, 20'000}) {
      const Status other_count = run(carried_call_of(3, count + differs, 0), 0);
      EXPECT_EQ(other_count.code(), Code::argument);
      EXPECT_THAT(std::string(other_count.text()), testing::HasSubstr("allreduce of"));
      EXPECT_EQ(run(carried_call_of(differs ? 2 : 0, count, 0), 0).code(), Code::argument);
      EXPECT_EQ(run(carried_call_of(1, count, differs ? last : 0), 0).code(), Code::argument);
      EXPECT_EQ(run(carried_call_of(4, count, differs ? last : 0), 0).code(), Code::argument);
      const Status out_of_step = run(carried_call_of(3, count, 0), differs);
      EXPECT_THAT(std::string(out_of_step.text()), testing::HasSubstr("different numbers of blocking calls"));
      EXPECT_TRUE(run(carried_call_of(3, count, 0), 1).is_ok());
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

INSTANTIATE_TEST_SUITE_P(, Carrying, testing::Range<std::size_t>(0, 7));

TEST(Carry, has_a_call_that_all_have_begun_on_one_node_over_at_the_first_look) {
  CarryingThreads threads({0, 0, 0});
  threads.run([](CarryingMember member) {
    for (std::uint64_t kind = 0; kind < CarriedCall::kinds; ++kind) {
      const CarriedCall call = carried_call_of(kind, 3, 0);
      const CarriedBytes mine = doubles_of(member.rank, 9, kind);
      CarriedBytes result(call.share_of(member.rank, 3).bytes);
      const auto request = member.begin(call, mine.data(), result.data());
      member.meeting.arrive_and_wait();
      bool is_over = false;
      EXPECT_TRUE(member.carry.test(*request, is_over, "test").is_ok());
      EXPECT_TRUE(is_over);
    }
  });
}

TEST(Carry, reduces_on_one_node_by_ranks_where_all_say_so) {
  CarryingThreads threads({0, 0, 0, 0, 0});
  threads.run([](CarryingMember member) {
    for (const std::size_t count : {3, 40'000}) {
      const CarriedBytes mine = doubles_of(member.rank, count, 1);
      std::vector<CarriedBytes> parts;
      for (std::uint32_t rank = 0; rank < 5; ++rank) parts.push_back(doubles_of(rank, count, 1));
      CarriedBytes wanted(mine.size()), result(mine.size());
      CarriedCall call = carried_call_of(3, count, 0);
      call.order = ReduceOrder::ranks;
      Fold(ops::kernels_for_this_machine(), call.type, call.op, call.order)
          .all(wanted.data(), wanted.size(), 5, [&](std::uint32_t part) { return parts[part].data(); });
      EXPECT_TRUE(member.wait(*member.begin(call, mine.data(), result.data())).is_ok());
      EXPECT_EQ(result, wanted);
      if (member.rank == 4) call.order = ReduceOrder::nodes;
      const Status differs = member.wait(*member.begin(call, mine.data(), result.data()));
      EXPECT_EQ(differs.code(), Code::argument);
      EXPECT_THAT(std::string(differs.text()), testing::HasSubstr("with FARSUM_REDUCE_ORDER=ranks"));
    }
  });
}

TEST(Carry, takes_no_number_where_there_is_no_memory) {
  CarryingThreads threads({0, 0, 1});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    CarriedBytes result(mine.size());
    auto request = std::make_shared<CarriedRequest>();
    request->call = carried_call_of(3, 5'000, 0);
    request->mine = mine.data();
    member.help.is_full = member.rank == 1;
    if (member.rank == 1) {
      EXPECT_EQ(member.carry.begin(request, 0, "begin").code(), Code::no_memory);
    }
    member.help.is_full = false;
    EXPECT_TRUE(member.wait(*member.begin(request->call, mine.data(), result.data())).is_ok());
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// Rank 1 maps nothing that others bring, but for the last call. Where it comes last it looks for all.
void carry_where_rank_1_maps_nothing(bool comes_last) {
  CarryingThreads threads({0, 0, 1});
  threads.run([&](CarryingMember member) {
    constexpr std::size_t count = 5'000;
    const CarriedBytes mine = doubles_of(member.rank, count, 1);
    CarriedBytes result(mine.size(), std::byte{7});
    const CarriedBytes untouched = result;
    std::shared_ptr<CarriedRequest> request;
    const auto begin = [&] { request = member.begin(carried_call_of(3, count, 0), mine.data(), result.data()); };
    const bool is_poor = member.rank == 1;
    member.help.can_reach = !is_poor;
    if (is_poor != comes_last) begin();
    member.meeting.arrive_and_wait();
    if (is_poor == comes_last) begin();
    member.meeting.arrive_and_wait();
    const Status status = member.wait(*request);
    if (is_poor || comes_last) {
      EXPECT_EQ(status.code(), Code::no_memory);
      EXPECT_THAT(std::string(status.text()), testing::HasSubstr("rank 1 of the group has no room"));
      EXPECT_EQ(result, untouched);
    } else {
      EXPECT_TRUE(status.is_ok());
    }
    member.meeting.arrive_and_wait();
    EXPECT_EQ(threads.open_extents(), 1) << "of which rank 1 cannot say that it has fetched from it";
    member.meeting.arrive_and_wait();
    member.help.can_reach = true;
    CarriedBytes sum(3 * sizeof(double));
    EXPECT_TRUE(member.wait(*member.begin(carried_call_of(3, 3, 0), mine.data(), sum.data())).is_ok());
    member.meeting.arrive_and_wait();
    EXPECT_EQ(threads.open_extents(), 0);
  });
}

TEST(Carry, tells_who_could_not_map_what_others_bring_and_gives_all_back_once_it_can) {
  carry_where_rank_1_maps_nothing(true);
  carry_where_rank_1_maps_nothing(false);
}

// What node 0 sends to node 1 makes no sense there. Rank 2 has begun calls to which others do not come any more.
void break_group_beside_calls(std::size_t begun_by_rank_1) {
  CarryingThreads threads({0, 1, 1});
  threads.boxes().spoil = [](const Mailboxes::Key& key, std::vector<std::byte>& letter) {
    if (std::get<0>(key) == 1) letter.front() ^= std::byte{1};
  };
  threads.run([&](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    std::vector<CarriedBytes> results(member.rank == 0 ? 1 : member.rank == 1 ? begun_by_rank_1 : 7);
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    if (member.rank == 0) member.meeting.arrive_and_wait();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::size_t count = i % 2 == 0 ? 3 : 5'000;
      results[i].resize(count * sizeof(double));
      requests.push_back(member.begin(carried_call_of(3, count, 0), mine.data(), results[i].data()));
    }
    if (member.rank != 0) member.meeting.arrive_and_wait();
    for (std::size_t i = requests.size(); i-- > 0;) {
      const Status status = member.wait(*requests[i]);
      EXPECT_EQ(status.code(), member.rank == 0 ? Code::ok : Code::system);
      if (member.rank == 0) continue;
      EXPECT_THAT(std::string(status.text()), testing::HasSubstr("the node of rank 0 of the group has sent"));
    }
    if (member.rank == 0) return;
    auto another = std::make_shared<CarriedRequest>();
    another->call = carried_call_of(3, 5'000, 0);
    another->mine = mine.data();
    const Status refused = member.carry.begin(another, 0, "begin");
    EXPECT_EQ(refused.code(), Code::system);
    EXPECT_THAT(std::string(refused.text()), testing::HasSubstr("the group is of no further use"));
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST(Carry, tells_all_ranks_of_a_node_that_their_group_is_broken_whatever_they_have_begun) {
  for (const std::size_t begun : {1, 2, 3, 7}) break_group_beside_calls(begun);
}

// Rank 1 comes to walk when two calls are whole, and finds in the first what breaks the group.
TEST(Carry, tells_other_nodes_nothing_more_of_a_group_that_is_broken) {
  CarryingThreads threads({0, 1, 1});
  threads.boxes().spoil = [](const Mailboxes::Key& key, std::vector<std::byte>& letter) {
    if (std::get<0>(key) == 1) letter.front() ^= std::byte{1};
  };
  threads.run([&](CarryingMember member) {
    member.agent.set_away(member.rank == 1);
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<CarriedBytes> results(member.rank == 0 ? 1 : 2, CarriedBytes(mine.size()));
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      member.meeting.arrive_and_wait();
      if (member.rank != rank) continue;
      for (CarriedBytes& result : results)
        requests.push_back(member.begin(carried_call_of(3, 3, 0), mine.data(), result.data()));
    }
    member.meeting.arrive_and_wait();
    for (const auto& request : requests)
      EXPECT_EQ(member.wait(*request).code(), member.rank == 0 ? Code::ok : Code::system);
    member.agent.set_away(false);
  });
  EXPECT_EQ(threads.boxes().sent_by(1), 1u);
}

TEST(Carry, is_of_no_further_use_where_no_letter_leaves) {
  CarryingThreads threads({0, 1, 1, 0});
  threads.boxes().cut();
  threads.run([&](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    CarriedBytes one(mine.size()), other(mine.size());
    const auto first = member.begin(carried_call_of(3, 5'000, 0), mine.data(), one.data());
    member.meeting.arrive_and_wait();
    const Status status = member.wait(*first);
    EXPECT_EQ(status.code(), Code::system);
    EXPECT_THAT(std::string(status.text()), testing::HasSubstr("a rank of another host has refused"));
    auto another = std::make_shared<CarriedRequest>();
    another->call = carried_call_of(0, 0, 0);
    EXPECT_EQ(member.carry.begin(another, 0, "begin").code(), Code::system);
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// Rank 1, which comes last, has no more to do with the call; the program of rank 0 does something else.
TEST(Carry, has_the_first_rank_walk_with_what_another_has_folded) {
  CarryingThreads threads({0, 0, 1});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    CarriedBytes result(mine.size());
    std::shared_ptr<CarriedRequest> request;
    for (const std::uint32_t rank : {0, 2, 1}) {
      if (member.rank == rank) request = member.begin(carried_call_of(3, 3, 0), mine.data(), result.data());
      member.meeting.arrive_and_wait();
    }
    if (member.rank != 0) {
      EXPECT_TRUE(member.wait(*request).is_ok());
    }
    member.meeting.arrive_and_wait();
    if (member.rank == 0) {
      EXPECT_TRUE(member.wait(*request).is_ok());
    }
  });
}

// The fifth call of rank 1 finds the place of the first taken, from which rank 0 goes last.
TEST(Carry, has_calls_enter_a_place_that_another_rank_has_closed) {
  CarryingThreads threads({0, 0});
  threads.run([](CarryingMember member) {
    member.agent.set_away(member.rank == 0);
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<CarriedBytes> results(CarriedPlace::most_under_way + 1, CarriedBytes(mine.size()));
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    const auto begin = [&](CarriedBytes& result) {
      requests.push_back(member.begin(carried_call_of(3, 3, 0), mine.data(), result.data()));
    };
    for (std::uint64_t i = 0; i < CarriedPlace::most_under_way; ++i) begin(results[i]);
    member.meeting.arrive_and_wait();
    if (member.rank == 1) begin(results.back());
    member.meeting.arrive_and_wait();
    if (member.rank == 0) {
      EXPECT_TRUE(member.wait(*requests.front()).is_ok());
      begin(results.back());
      EXPECT_TRUE(member.wait(*requests.back()).is_ok());
    }
    member.meeting.arrive_and_wait();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (member.rank == 0 && (i == 0 || i + 1 == requests.size())) continue;
      EXPECT_TRUE(member.wait(*requests[i]).is_ok());
    }
  });
}

TEST(Carry, lets_several_threads_of_a_rank_wait_at_once) {
  CarryingThreads threads({0, 1, 0, 1});
  threads.run([](CarryingMember member) {
    constexpr std::size_t count = 12;
    std::vector<CarriedBytes> results(count, CarriedBytes(3 * sizeof(double)));
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<std::thread> waiting;
    for (std::size_t i = 0; i < count; ++i) {
      auto request = member.begin(carried_call_of(3, 3, 0), mine.data(), results[i].data());
      waiting.emplace_back([&member, request] { EXPECT_TRUE(member.wait(*request).is_ok()); });
    }
    for (std::thread& thread : waiting) thread.join();
    for (const CarriedBytes& result : results) EXPECT_EQ(result, results.front());
  });
}

// The look that ends the first call enters the fifth, to which the other node has come already.
TEST(Carry, walks_with_what_the_look_that_ends_another_call_has_entered) {
  CarryingThreads threads({0, 1});
  threads.run([](CarryingMember member) {
    member.agent.set_away(true);
    member.meeting.arrive_and_wait();
    constexpr std::size_t count = 2 * CarriedPlace::most_under_way + 1;
    std::vector<CarriedBytes> results(count, CarriedBytes(3 * sizeof(double)));
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    const auto begin_all = [&] {
      for (CarriedBytes& result : results)
        requests.push_back(member.begin(carried_call_of(3, 3, 0), mine.data(), result.data()));
    };
    if (member.rank == 0) begin_all();
    member.meeting.arrive_and_wait();
    if (member.rank == 1) begin_all();
    member.meeting.arrive_and_wait();
    if (member.rank == 0) {
      EXPECT_TRUE(member.wait(*requests.front()).is_ok());
      // The fifth is over, too, and has made room for the ninth.
      EXPECT_EQ(member.help.under_way, 4);
    }
    member.meeting.arrive_and_wait();
    member.agent.set_away(false);
    for (std::size_t i = member.rank == 0 ? 1 : 0; i < count; ++i) {
      EXPECT_TRUE(member.wait(*requests[i]).is_ok());
    }
  });
}

TEST(Carry, completes_a_request_for_one_of_two_threads_that_test_it) {
  CarryingThreads threads({0, 0, 1});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    for (int round = 0; round < 20; ++round) {
      CarriedBytes result(mine.size());
      const auto request = member.begin(carried_call_of(3, 5'000, 0), mine.data(), result.data());
      std::atomic<int> completed{0}, refused{0};
      const auto look_on = [&] {
        for (;;) {
          bool is_over = false;
          const Status status = member.carry.wait(*request, is_over, "wait");
          if (is_over) return void(++completed);
          if (status.code() == Code::handle) return void(++refused);
        }
      };
      std::thread other(look_on);
      look_on();
      other.join();
      EXPECT_EQ(completed, 1);
      EXPECT_EQ(refused, 1);
      EXPECT_EQ(member.carry.open_requests(), 0);
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST(Carry, holds_up_no_other_thread_while_it_begins_to_fold) {
  CarryingThreads threads({0, 0});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    CarriedBytes early(3 * sizeof(double)), result(mine.size());
    const auto first = member.begin(carried_call_of(3, 3, 0), mine.data(), early.data());
    member.meeting.arrive_and_wait();
    std::shared_ptr<CarriedRequest> second;
    const auto begin = [&] { second = member.begin(carried_call_of(3, 5'000, 0), mine.data(), result.data()); };
    if (member.rank == 0) begin();
    member.meeting.arrive_and_wait();
    if (member.rank == 1) {
      std::latch folds(1), may_go_on(1);
      int reached = 0;
      // First it is what this rank itself brings.
      member.help.when_reaching = [&] {
        if (++reached != 2) return;
        folds.count_down();
        may_go_on.wait();
      };
      std::thread folding(begin);
      folds.wait();
      EXPECT_TRUE(member.wait(*first).is_ok());
      EXPECT_FALSE(member.carry.take_turn(Carry::Folding::done).is_unfinished);
      may_go_on.count_down();
      folding.join();
      member.help.when_reaching = nullptr;
    } else {
      EXPECT_TRUE(member.wait(*first).is_ok());
    }
    EXPECT_TRUE(member.wait(*second).is_ok());
  });
}

TEST(Carry, rings_the_agent_that_has_found_a_thread_in_its_way) {
  CarryingThreads threads({0});
  threads.run([](CarryingMember member) {
    Carry::Turn turn;
    member.help.when_counting = [&] {
      std::thread([&] { turn = member.carry.take_turn(Carry::Folding::done); }).join();
    };
    CarriedBytes result(3 * sizeof(double));
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    const auto request = member.begin(carried_call_of(3, 3, 0), mine.data(), result.data());
    EXPECT_FALSE(turn.is_unfinished);
    EXPECT_EQ(member.help.rung, 1);
    member.help.when_counting = nullptr;
    EXPECT_TRUE(member.wait(*request).is_ok());
  });
}

TEST(Carry, does_not_leave_in_the_middle_what_a_cancelled_thread_has_begun) {
  CarryingThreads threads({0});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    CarriedBytes result(mine.size());
    member.help.when_counting = [] { pthread_testcancel(); };
    bool is_over = false;
    std::thread cancelled([&] {
      pthread_cancel(pthread_self());
      const auto request = member.begin(carried_call_of(3, 3, 0), mine.data(), result.data());
      (void)member.carry.test(*request, is_over, "test");
    });
    cancelled.join();
    EXPECT_TRUE(is_over);
    EXPECT_EQ(result, mine);
    member.help.when_counting = nullptr;
  });
}

}  // namespace
}  // namespace farsum
