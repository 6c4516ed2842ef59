// A team's calls carried by letters: ranks are threads with a desk each, and one thread carries what they send each
// other, in any order but that of two ranks. Waiters sleep until they are woken, so that a wake-up that is missing
// hangs.
#include "collectives/letter_post.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "collectives/carried_block.hpp"
#include "collectives/group_team.hpp"
#include "collectives/reduction_lists.hpp"
#include "collectives/reductions.hpp"
#include "cost/meeting_model.hpp"
#include "desk_roads.hpp"
#include "failing_memory.hpp"
#include "mailboxes.hpp"
#include "sleeping_waiter.hpp"
#include "transport/sim/sim_random.hpp"
#include "trees/schedule.hpp"

namespace farsum {
namespace {

// A rank with its desk; what the desk does not carry goes through mailboxes.
struct RankWithDesk {
  RankWithDesk(DeskRoads& roads, Mailboxes& boxes, Rank me)
      : transport(roads, me), desk(transport, [] {}), others(boxes, me, waiter) {
    roads.be(me, desk, waiter.own_events());
  }

  SleepingWaiter waiter;
  TransportOnRoads transport;
  LetterDesk desk;
  Post others;
};

class TeamsByLetters : public testing::Test {
 protected:
  using Body = std::function<void(GroupTeam&, std::uint32_t rank)>;
  using Nodes = std::vector<std::uint32_t>;  // by rank, the node it is on
  static constexpr std::uint64_t team_name = 7;

  void run(const Nodes& node_of, const Body& body) {
    DeskRoads roads(node_of.size());
    roads.lacks_memory_once_in = lacks_memory_once_in_;
    std::deque<RankWithDesk> ranks;
    std::map<std::uint32_t, std::vector<std::uint64_t>> blocks;
    for (Rank rank = 0; rank < node_of.size(); ++rank) {
      ranks.emplace_back(roads, boxes_, rank);
      const auto members = static_cast<std::uint32_t>(std::count(node_of.begin(), node_of.end(), node_of[rank]));
      blocks[node_of[rank]].resize(NodeTeamBlock::footprint(members) / 8 + 16);
    }
    std::atomic<bool> is_over{false};
    std::thread carrier([&] {
      SimRandom random(5);
      while (!is_over || roads.carry_one(random)) {
        if (!roads.carry_one(random)) std::this_thread::yield();
        roads.retry();
      }
    });
    std::barrier<> begun(static_cast<std::ptrdiff_t>(node_of.size()));
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < node_of.size(); ++rank) {
      const auto start = reinterpret_cast<std::uintptr_t>(blocks[node_of[rank]].data());
      auto* block = reinterpret_cast<NodeTeamBlock*>(round_up(start, cache_line_bytes));
      threads.emplace_back([&, rank, block] { be(ranks[rank], rank, node_of, *block, begun, body); });
    }
    for (std::thread& thread : threads) thread.join();
    is_over = true;
    carrier.join();
    for (const RankWithDesk& rank : ranks) {
      letters_ += rank.desk.sent();
      EXPECT_EQ(rank.desk.refused(), 0u);
      EXPECT_EQ(rank.desk.unknown(), 0u);
    }
  }

  void be(RankWithDesk& rank, Rank me, const Nodes& node_of, NodeTeamBlock& block, std::barrier<>& begun,
          const Body& body) const {
    const GroupPlaces places = places_of(node_of, node_of[me]);
    std::optional<LetterPost> post;
    if (places.here.front() == me) post.emplace(rank.desk, rank.others, places, use_, rank.waiter.own_events());
    GroupTeam team(places, me, post ? &*post : nullptr, rank.waiter);
    team.begin(block, team_name);
    if (post) post->begin(team_name);
    begun.arrive_and_wait();
    if (post) post->open();
    body(team, me);
    // A team ends with a meeting.
    ASSERT_TRUE(team.barrier("free").is_ok());
  }

  static void expect_gathers(GroupTeam& team, std::uint32_t rank, std::size_t words) {
    std::vector<std::uint64_t> mine(words), all(team.size() * words);
    std::iota(mine.begin(), mine.end(), rank * words);
    ASSERT_TRUE(
        team.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), "gather").is_ok());
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
  }
  static void expect_broadcasts(GroupTeam& team, std::uint32_t rank, std::uint32_t root, std::size_t words) {
    std::vector<std::uint64_t> told(words, rank == root ? 100 + root : 0);
    ASSERT_TRUE(team.broadcast(std::as_writable_bytes(std::span(told)), root, "broadcast").is_ok());
    for (const std::uint64_t word : told) ASSERT_EQ(word, 100 + root);
  }

  Mailboxes boxes_;
  LetterPost::Use use_ = LetterPost::Use::group;
  std::uint64_t lacks_memory_once_in_ = 0;
  std::uint64_t letters_ = 0;
};

TEST_F(TeamsByLetters, of_a_window_meet_in_its_few_slots_without_another_post) {
  use_ = LetterPost::Use::window;
  for (const Nodes& node_of : {Nodes{0, 1, 0, 2, 1}, Nodes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}) {
    run(node_of, [](GroupTeam& team, std::uint32_t rank) {
      for (std::uint32_t round = 0; round < 40; ++round) {
        ASSERT_TRUE(team.barrier("barrier").is_ok());
        expect_gathers(team, rank, 1);
      }
    });
  }
  EXPECT_EQ(boxes_.sent(), 0u);
}

TEST_F(TeamsByLetters, meet_gather_and_broadcast_what_is_short_without_another_post) {
  run({0, 1, 0, 2, 1}, [](GroupTeam& team, std::uint32_t rank) {
    for (std::uint32_t round = 0; round < 60; ++round) {
      ASSERT_TRUE(team.barrier("barrier").is_ok());
      expect_gathers(team, rank, 1 + round % 3 * 20);
      expect_broadcasts(team, rank, round % 5, 1 + round % 7 * 10);
    }
  });
  EXPECT_EQ(boxes_.sent(), 0u);
  // Each of three nodes tells both others in a meeting; one tells both in a broadcast.
  EXPECT_GE(letters_, 60 * (6 + 6 + 2));
}

TEST_F(TeamsByLetters, have_long_ones_go_by_another_post_between_short_ones) {
  run({0, 1, 1, 2}, [](GroupTeam& team, std::uint32_t rank) {
    for (std::uint32_t round = 0; round < 12; ++round) {
      expect_gathers(team, rank, round % 2 == 0 ? 9'000 : 2);
      expect_broadcasts(team, rank, round % 4, round % 3 == 0 ? 20'000 : 3);
      ASSERT_TRUE(team.barrier("barrier").is_ok());
    }
  });
  EXPECT_GT(boxes_.sent(), 0u);
  EXPECT_GT(letters_, 0u);
}

// More than meet at once, so that there are rounds of dissemination and trees, whose nodes are neighbours of some only.
TEST_F(TeamsByLetters, of_many_nodes_need_no_other_post_either) {
  const std::uint32_t nodes = 21;
  ASSERT_FALSE(cost::meet_at_once(nodes));
  Nodes node_of(nodes);
  std::iota(node_of.begin(), node_of.end(), 0u);
  run(node_of, [](GroupTeam& team, std::uint32_t rank) {
    for (std::uint32_t round = 0; round < 15; ++round) {
      ASSERT_TRUE(team.barrier("barrier").is_ok());
      expect_gathers(team, rank, 1);
      expect_broadcasts(team, rank, 4 * round % 21, 2);
    }
  });
  EXPECT_EQ(boxes_.sent(), 0u);
}

TEST_F(TeamsByLetters, tell_of_calls_that_differ_and_go_on) {
  run({0, 1, 2}, [](GroupTeam& team, std::uint32_t rank) {
    for (int round = 0; round < 5; ++round) {
      std::vector<std::byte> mine(rank == 1 ? 16 : 8), all(3 * mine.size());
      EXPECT_EQ(team.allgather(mine, all, "gather").code(), Code::argument);
      expect_gathers(team, rank, 4);
    }
  });
}

// However many slots are free untold, behind broadcasts and a barrier of which each leaves one or none so.
class RootAhead : public TeamsByLetters {
 protected:
  void expect_root_ahead(const Nodes& node_of) {
    std::atomic<std::size_t> ahead{0};
    run(node_of, [&](GroupTeam& team, std::uint32_t rank) {
      for (std::size_t before = 0; before < LetterPost::slots; ++before) {
        for (std::size_t i = 0; i < before; ++i) expect_broadcasts(team, rank, 0, 1);
        ASSERT_TRUE(team.barrier("barrier").is_ok());
        for (std::size_t seen = ahead; rank != 0 && seen <= before; seen = ahead) ahead.wait(seen);
        for (std::size_t i = 0; i < TeamPost::most_rounds_ahead; ++i) expect_broadcasts(team, rank, 0, 1);
        if (rank != 0) continue;
        ahead = before + 1;
        ahead.notify_all();
      }
    });
    EXPECT_EQ(boxes_.sent(), 0u);
  }
};

TEST_F(RootAhead, is_as_many_broadcasts_ahead_as_by_another_post) { expect_root_ahead({0, 1}); }

TEST_F(RootAhead, is_so_far_ahead_of_nodes_that_are_neighbours_of_some_only) {
  Nodes node_of(13);
  std::iota(node_of.begin(), node_of.end(), 0u);
  ASSERT_FALSE(cost::meet_at_once(13));
  expect_root_ahead(node_of);
}

TEST_F(TeamsByLetters, need_no_memory_for_a_call) {
  run({0, 1, 0, 2}, [](GroupTeam& team, std::uint32_t rank) {
    std::uint64_t mine = rank, all[4] = {};
    bool are_good = true;
    {
      const FailingMemory none(0, FailingMemory::Fails::for_good);
      const auto gathered = std::as_writable_bytes(std::span(all));
      for (int round = 0; round < 10; ++round) {
        are_good = team.barrier("barrier").is_ok() && are_good;
        are_good = team.allgather(std::as_bytes(std::span(&mine, 1)), gathered, "gather").is_ok() && are_good;
        are_good = team.broadcast(gathered, 1, "broadcast").is_ok() && are_good;
      }
    }
    EXPECT_TRUE(are_good);
  });
}

TEST_F(TeamsByLetters, go_on_over_roads_that_find_no_memory_now_and_then) {
  lacks_memory_once_in_ = 3;
  run({0, 1, 0, 2, 3}, [](GroupTeam& team, std::uint32_t rank) {
    for (std::uint32_t round = 0; round < 100; ++round) {
      ASSERT_TRUE(team.barrier("barrier").is_ok());
      expect_gathers(team, rank, 3);
      expect_broadcasts(team, rank, round % 5, 2);
    }
  });
  EXPECT_EQ(boxes_.sent(), 0u);
}

// Two nodes, without a carrier: what was sent comes when it is carried.
class TwoLetterPosts : public testing::Test {
 protected:
  static constexpr std::uint64_t team_name = 7;

  explicit TwoLetterPosts(LetterPost::Use use = LetterPost::Use::group)
      : here_(here_rank_.desk, here_rank_.others, places_of({0, 1}, 0), use, here_rank_.waiter.own_events()),
        there_(there_rank_.desk, there_rank_.others, places_of({0, 1}, 1), use, there_rank_.waiter.own_events()) {
    for (LetterPost* post : {&here_, &there_}) post->begin(team_name);
  }
  void open() {
    for (LetterPost* post : {&here_, &there_}) post->open();
  }
  void carry() {
    while (roads_.carry_one(random_)) {
    }
  }
  bool send(std::uint64_t round, std::size_t bytes, std::uint64_t team = team_name) {
    std::size_t sent = 0;
    const std::vector<std::byte> letter(bytes, static_cast<std::byte>(round));
    // The mailboxes have no room now and then.
    for (int tries = 0; tries < 100; ++tries)
      if (here_.try_send(1, team, round, letter, sent)) return sent == bytes;
    return false;
  }
  bool takes(std::uint64_t round, std::size_t bytes, std::uint64_t team = team_name) {
    bool is_right = false;
    const auto use = [&](std::span<const std::byte> letter) {
      is_right = letter.size() == bytes && std::all_of(letter.begin(), letter.end(), [&](std::byte one) {
                   return one == static_cast<std::byte>(round);
                 });
    };
    return there_.take(0, team, round, use) && is_right;
  }
  // Whether who sleeps there is woken by what is carried.
  bool wakes_by_carrying() {
    EventCount& events = there_rank_.waiter.own_events();
    const std::uint32_t before = events.prepare();
    carry();
    const std::uint32_t after = events.prepare();
    for (int i = 0; i < 2; ++i) events.cancel();
    return after != before;
  }

  Mailboxes boxes_;
  DeskRoads roads_{2};
  SimRandom random_{1};
  RankWithDesk here_rank_{roads_, boxes_, 0}, there_rank_{roads_, boxes_, 1};
  LetterPost here_, there_;
};

TEST_F(TwoLetterPosts, send_by_another_until_all_have_begun) {
  ASSERT_TRUE(send(1, 8));
  EXPECT_EQ(boxes_.sent(), 1u);
  EXPECT_TRUE(takes(1, 8));
  open();
  ASSERT_TRUE(send(2, 8));
  EXPECT_EQ(boxes_.sent(), 1u);
  EXPECT_FALSE(takes(2, 8));
  carry();
  EXPECT_TRUE(takes(2, 8));
}

TEST_F(TwoLetterPosts, send_by_another_where_a_road_carries_no_letters) {
  here_rank_.transport.most_letter_bytes = 0;
  LetterPost none{here_rank_.desk, here_rank_.others, places_of({0, 1}, 0), LetterPost::Use::group,
                  here_rank_.waiter.own_events()};
  none.begin(team_name + 1);
  none.open();
  EXPECT_EQ(none.most_letter_bytes(), std::nullopt);
  for (const std::size_t bytes : {0, 8}) {
    std::size_t sent = 0;
    const std::vector<std::byte> letter(bytes);
    while (!none.try_send(1, team_name + 1, 1 + bytes, letter, sent)) {
    }
  }
  EXPECT_EQ(boxes_.sent(), 2u);
}

TEST_F(TwoLetterPosts, take_rounds_in_order_whichever_way_they_came) {
  open();
  ASSERT_TRUE(here_.most_letter_bytes());
  const std::size_t longest = *here_.most_letter_bytes();
  ASSERT_TRUE(send(1, longest + 1));
  ASSERT_TRUE(send(2, longest));
  EXPECT_EQ(boxes_.sent(), 1u);
  carry();
  EXPECT_TRUE(takes(1, longest + 1));
  EXPECT_TRUE(takes(2, longest));
  EXPECT_FALSE(takes(3, 8));
}

TEST_F(TwoLetterPosts, pass_over_what_is_left_of_a_call_that_has_failed) {
  open();
  for (const std::uint64_t round : {1, 2, 4}) ASSERT_TRUE(send(round, 8));
  carry();
  EXPECT_FALSE(takes(3, 8));
  EXPECT_TRUE(takes(4, 8));
}

TEST_F(TwoLetterPosts, refuse_what_is_further_ahead_than_anybody_may_be) {
  open();
  constexpr std::uint64_t furthest = 1 + TeamPost::most_rounds_ahead + 1;
  ASSERT_TRUE(send(furthest, 8));
  ASSERT_TRUE(send(furthest + 1, 8));
  carry();
  EXPECT_FALSE(takes(1, 8));
  EXPECT_EQ(there_rank_.desk.refused(), 0u) << "the first may come so early";
  EXPECT_TRUE(takes(furthest, 8));
  ASSERT_TRUE(send(2 * furthest, 8));
  ASSERT_TRUE(send(furthest + 2, 8));
  carry();
  EXPECT_TRUE(takes(furthest + 1, 8));
  EXPECT_FALSE(takes(furthest + 1, 8));
  EXPECT_EQ(there_rank_.desk.refused(), 0u);
  EXPECT_FALSE(takes(furthest - 1, 8)) << "the second is too far ahead of this one";
  EXPECT_EQ(there_rank_.desk.refused(), 1u);
  EXPECT_TRUE(takes(furthest + 2, 8)) << "it stands no longer behind that";
}

TEST_F(TwoLetterPosts, find_slots_again_for_long_in_one_direction) {
  open();
  for (std::uint64_t round = 1; round <= 100; ++round) {
    ASSERT_TRUE(send(round, round % 90)) << round;
    carry();
    ASSERT_TRUE(takes(round, round % 90));
    carry();
  }
  const std::uint64_t last = 100 + LetterPost::slots - 100 % (LetterPost::slots / 2);
  for (std::uint64_t round = 101; round <= last; ++round) {
    ASSERT_TRUE(send(round, 1));
    carry();
  }
  EXPECT_FALSE(send(last + 1, 1)) << "nothing was taken, and of what was before " << 100 % (LetterPost::slots / 2)
                                  << " are untold";
}

TEST_F(TwoLetterPosts, wake_who_sleeps_there_and_say_what_is_answered) {
  open();
  ASSERT_TRUE(send(1, 8));
  EXPECT_TRUE(wakes_by_carrying());
  EXPECT_FALSE(here_.take_awaits_answers());
  ASSERT_TRUE(send(2, 5'000));
  EXPECT_TRUE(here_.take_awaits_answers());
  EXPECT_FALSE(here_.take_awaits_answers());
}

class TwoCarriedPosts : public TwoLetterPosts {
 protected:
  static constexpr std::uint32_t slots = LetterPost::slots_of_carried;

  TwoCarriedPosts() : TwoLetterPosts(LetterPost::Use::carried) { roads_.most = 1'000; }
  static std::uint64_t team_of(std::uint64_t place) { return carried_team(team_name, place); }
};

TEST_F(TwoCarriedPosts, have_no_letter_of_a_place_wait_for_those_of_another) {
  open();
  for (std::uint64_t place = 0; place < CarriedPlace::most_under_way; ++place) {
    for (std::uint64_t round = 1; round <= slots; ++round)
      ASSERT_TRUE(send(round, 10 * place + round, team_of(place))) << place;
    EXPECT_FALSE(send(slots + 1, 1, team_of(place)));
  }
  EXPECT_EQ(boxes_.sent(), 0u);
  carry();
  for (std::uint64_t place = CarriedPlace::most_under_way; place-- > 0;) {
    for (std::uint64_t round = 1; round <= slots; ++round)
      EXPECT_TRUE(takes(round, 10 * place + round, team_of(place))) << place;
    carry();
    EXPECT_TRUE(send(slots + 1, 1, team_of(place)));
  }
  EXPECT_EQ(there_rank_.desk.refused() + there_rank_.desk.unknown(), 0u);
}

TEST_F(TwoCarriedPosts, tell_the_other_way_of_what_is_long_by_the_team_of_its_place) {
  open();
  for (std::uint64_t place = 0; place < CarriedPlace::most_under_way; ++place) {
    ASSERT_TRUE(send(1, 5'000 + place, team_of(place)));
    ASSERT_TRUE(send(2, 1, team_of(place)));
  }
  carry();
  for (std::uint64_t place = CarriedPlace::most_under_way; place-- > 0;) {
    EXPECT_TRUE(takes(1, 5'000 + place, team_of(place)));
    EXPECT_TRUE(takes(2, 1, team_of(place)));
  }
}

// Whoever has served goes on with these calls.
TEST_F(TwoCarriedPosts, wake_nobody) {
  open();
  ASSERT_TRUE(send(1, 8, team_of(0)));
  EXPECT_FALSE(wakes_by_carrying());
  EXPECT_TRUE(takes(1, 8, team_of(0)));
}

class NotingWaiter final : public SleepingWaiter {
 public:
  void note_come() override { ++noted; }
  int noted = 0;
};

class NothingHeld final : public LetterContent {
 public:
  std::span<const std::byte> held(const trees::Step&) override { return {}; }
  Status take(const trees::Step&, std::span<const std::byte>) override { return {}; }
};

// It had better look on for what the others send than sleep at once.
TEST(LetterWalk, tells_its_waiter_once_of_each_letter_that_has_left) {
  Mailboxes boxes;
  NotingWaiter waiter;
  Post post(boxes, 0, waiter);
  NothingHeld nothing;
  const auto first_of = [](std::uint32_t node) { return Rank{node}; };
  const LetterRound round = {.post = post, .waiter = waiter, .team = 7, .number = 1, .first_of = first_of};
  std::vector<trees::Step> steps;
  for (std::uint32_t peer = 1; peer <= 5; ++peer) steps.push_back({trees::Action::send, false, peer, 0, 1});
  ASSERT_TRUE(walk_letters(round, steps, nothing, "walk").is_ok());
  EXPECT_EQ(waiter.noted, 5);
}

TEST(LetterPostShape, keeps_a_teams_slots_few_and_a_meetings_letter_short_enough) {
  for (const std::uint32_t nodes : {2, 3, 4, 8, 12, 13, 32, 33, 64, 512, 1000}) {
    const auto neighbours = static_cast<std::uint32_t>(LetterNeighbours::of(nodes, 0).ranks.size());
    const Letters::Shape shape = LetterPost::shape_of(neighbours, LetterPost::Use::group);
    const Letters::Shape of_window = LetterPost::shape_of(neighbours, LetterPost::Use::window);
    const Letters::Shape carried = LetterPost::shape_of(neighbours, LetterPost::Use::carried);
    EXPECT_EQ(carried.places, CarriedPlace::most_under_way);
    EXPECT_EQ(carried.slot_bytes, shape.slot_bytes) << "what is short goes the same way, waited for or not";
    EXPECT_LE(Letters::footprint(carried), 312u << 10) << nodes;
    EXPECT_LE(Letters::zeroed_bytes(carried), std::size_t{neighbours} * 2560) << nodes;
    EXPECT_LE(Letters::footprint(of_window), std::size_t{neighbours} * 1280) << nodes;
    EXPECT_GE(of_window.slot_bytes, sizeof(CallHead) + 16 * sizeof(std::uint64_t)) << nodes;
    EXPECT_EQ(shape.slot_bytes % cache_line_bytes, 0u);
    EXPECT_LE(Letters::footprint(shape), 160u << 10) << nodes;
    EXPECT_LE(shape.slot_bytes + LetterDesk::overhead_bytes, 4096u);
    EXPECT_GE(shape.slot_bytes, sizeof(CallHead) + 16 * sizeof(std::uint64_t)) << nodes;
  }
}

TEST(LetterPostShape, has_a_neighbour_for_each_step_of_a_reduction_of_any_degree) {
  for (const std::uint32_t degree : {2, 3, 4, 8, 64}) {
    for (const std::uint32_t nodes : {2, 5, 12, 13, 33, 64, 100}) {
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const LetterNeighbours neighbours = LetterNeighbours::of(nodes, node, degree);
        for (const trees::Step& step : ReductionLists::list_of(nodes, node, degree))
          ASSERT_NE(neighbours.by_node[step.peer], LetterNeighbours::none)
              << nodes << " at degree " << degree << ": " << node << " to " << step.peer;
      }
    }
  }
}

TEST(LetterPostShape, has_a_neighbour_for_each_step_of_each_list) {
  for (const std::uint32_t nodes : {2, 5, 12, 13, 21, 32, 33, 64, 100}) {
    const std::uint32_t degree = cost::meeting_degree(nodes);
    std::vector<trees::Shape> shapes = {{.kind = trees::Kind::allgather, .nodes = nodes, .degree = degree},
                                        {.kind = trees::Kind::allreduce, .nodes = nodes, .elements = 1}};
    for (std::uint32_t root = 0; root < nodes; ++root) {
      shapes.push_back({.kind = trees::Kind::broadcast, .nodes = nodes, .root = root, .elements = 1, .degree = degree});
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const LetterNeighbours neighbours = LetterNeighbours::of(nodes, node);
      for (const trees::Shape& shape : shapes) {
        for (const trees::Step& step : trees::steps_of(shape, node))
          ASSERT_NE(neighbours.by_node[step.peer], LetterNeighbours::none)
              << nodes << ": " << node << " to " << step.peer;
      }
    }
  }
}

}  // namespace
}  // namespace farsum
