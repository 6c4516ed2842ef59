// Letters of teams as a process takes them in and sends them: to whom they go, who is told, and what is tried again.
#include "collectives/letter_desk.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "golden.hpp"
#include "mute_transport.hpp"

namespace farsum {
namespace {

using DeskBytes = std::vector<std::byte>;

// Keeps what is sent, where it has room.
class DeskTransport final : public MuteTransport {
 public:
  Capabilities capabilities(Rank to) const override {
    Capabilities capabilities;
    capabilities.max_letter_bytes = to == narrow ? narrow_bytes : 4096;
    return capabilities;
  }
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override {
    const std::lock_guard lock(mutex_);
    ++tries;
    on_try();
    if (lacks_memory) throw std::bad_alloc();
    if (is_full) return false;
    DeskBytes& letter = sent.emplace_back(to, DeskBytes(header.begin(), header.end())).second;
    letter.insert(letter.end(), body.begin(), body.end());
    return true;
  }

  Rank narrow = ~Rank{0};
  std::size_t narrow_bytes = 64;
  std::atomic<bool> is_full{false}, lacks_memory{false};
  std::atomic<int> tries{0};
  std::function<void()> on_try = [] {};
  std::deque<std::pair<Rank, DeskBytes>> sent;

 private:
  std::mutex mutex_;
};

constexpr std::uint32_t desk_nodes = 3;
constexpr Letters::Shape desk_shape{.neighbours = desk_nodes - 1, .slots = 2, .slot_bytes = 112, .places = 2};

struct DeskBlock {
  struct alignas(2 * cache_line_bytes) Line {
    std::byte bytes[2 * cache_line_bytes] = {};
  };
  std::vector<Line> lines{Letters::footprint(desk_shape) / sizeof(Line) + 1};
};

// Node n's speaker is rank 10 n.
LetterNeighbours desk_neighbours(std::uint32_t my_node) {
  LetterNeighbours neighbours = LetterNeighbours::of(desk_nodes, my_node);
  for (std::uint32_t node = 0; node < desk_nodes; ++node)
    if (node != my_node) neighbours.ranks[neighbours.by_node[node]] = 10 * node;
  return neighbours;
}

class DeskTeam final : private DeskBlock, public LetterDesk::Entry {
 public:
  explicit DeskTeam(std::uint32_t my_node) : Entry(desk_neighbours(my_node), lines[0].bytes, desk_shape) {}

  std::atomic<int> looks{0};
  std::function<void()> on_look = [] {};

 private:
  void look_again() noexcept override {
    ++looks;
    on_look();
  }
};

class LetterDeskTest : public testing::Test {
 protected:
  static constexpr std::uint64_t team_name = 77;
  static constexpr std::uint64_t alone = LetterHead::credit_alone;

  // A letter that node `from` sends.
  static DeskBytes letter(std::uint32_t from_node, LetterHead head, std::size_t content = 8, std::uint16_t place = 0,
                          std::uint64_t name = team_name) {
    const LetterAddress address{name, from_node, place, LetterAddress::Kind::of_call};
    DeskBytes bytes(sizeof address + sizeof head + (head.number == alone ? 0 : sizeof(std::uint64_t) + content));
    std::memcpy(bytes.data(), &address, sizeof address);
    std::memcpy(bytes.data() + sizeof address, &head, sizeof head);
    return bytes;
  }
  LetterDesk::Sent send(std::uint32_t neighbour = 0, std::uint32_t place = 0) {
    return desk.send(team, neighbour, place, {.round = 5, .content = {}});
  }
  void file_and_consume(std::uint64_t number) {
    desk.on_letter(10, letter(1, {number, 0}));
    ASSERT_TRUE(desk.take(team, 0, 0));
    desk.consumed(team, 0, 0);
  }

  DeskTransport transport;
  int rouses = 0;
  std::vector<OddLetter> odd;
  LetterDesk desk{transport, [this] { ++rouses; }, [this](const OddLetter& letter) { odd.push_back(letter); }};
  DeskTeam team{0};
};

TEST_F(LetterDeskTest, hands_a_letter_to_its_team_and_place) {
  DeskTeam other(0);
  desk.add(team, team_name);
  desk.add(other, team_name + 1);
  DeskBytes sent = letter(2, {0, 0}, 3, 1);
  sent.back() = std::byte{9};
  desk.on_letter(20, sent);
  EXPECT_FALSE(desk.take(other, 1, 1));
  EXPECT_FALSE(desk.take(team, 0, 1));
  EXPECT_FALSE(desk.take(team, 1, 0));
  const auto got = desk.take(team, 1, 1);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->round, 0u);
  EXPECT_EQ(DeskBytes(got->content.begin(), got->content.end()), (DeskBytes{{}, {}, std::byte{9}}));
  EXPECT_EQ(team.looks, 0) << "not in the turn in which it came";
  desk.wake_touched();
  EXPECT_EQ(team.looks, 1);
  EXPECT_EQ(other.looks, 0);
  desk.remove(team);
  desk.remove(other);
}

TEST_F(LetterDeskTest, has_a_team_look_once_for_all_that_came_in_a_turn) {
  desk.add(team, team_name);
  for (const std::uint64_t number : {0, 1}) desk.on_letter(10, letter(1, {number, 0}));
  desk.on_letter(20, letter(2, {0, 0}));
  desk.wake_touched();
  desk.wake_touched();
  EXPECT_EQ(team.looks, 1);
  desk.on_letter(20, letter(2, {1, 0}));
  desk.wake_touched();
  EXPECT_EQ(team.looks, 2);
  desk.remove(team);
}

TEST_F(LetterDeskTest, sends_what_the_neighbours_desk_files) {
  desk.add(team, team_name);
  DeskTransport back;
  LetterDesk neighbour(back, [] {});
  DeskTeam there(1);
  neighbour.add(there, team_name);
  const std::byte content[] = {std::byte{4}, std::byte{2}};
  ASSERT_EQ(desk.send(team, 0, 1, {.round = 5, .content = content}), LetterDesk::Sent::yes);
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_EQ(transport.sent[0].first, 10u);
  neighbour.on_letter(0, transport.sent[0].second);
  const auto got = neighbour.take(there, 0, 1);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->round, 5u);
  EXPECT_EQ(DeskBytes(got->content.begin(), got->content.end()), DeskBytes(content, content + 2));
  EXPECT_EQ(desk.sent(), 1u);
  desk.remove(team);
  neighbour.remove(there);
}

TEST_F(LetterDeskTest, writes_a_letter_and_credit_as_recorded) {
  desk.add(team, 0x0102030405060708);
  for (const std::uint64_t number : {0, 1, 2}) desk.on_letter(20, letter(2, {number, 0}, 8, 1, 0x0102030405060708));
  desk.consumed(team, 1, 1);
  const std::byte content[] = {std::byte{4}, std::byte{2}};
  for (const std::uint64_t round : {0x1112131415161718, 0x2122232425262728})
    ASSERT_EQ(desk.send(team, 1, 1, {.round = round, .content = content}), LetterDesk::Sent::yes);
  desk.consumed(team, 1, 1);
  desk.on_letter(20, letter(2, {2, 0}, 8, 1, 0x0102030405060708));
  desk.consumed(team, 1, 1);
  ASSERT_EQ(transport.sent.size(), 3u);
  std::string text;
  for (const char* const what : {"a letter\n", "the next of its channel\n", "credit alone\n"}) {
    text += what + words_of(transport.sent.front().second);
    transport.sent.pop_front();
  }
  expect_golden("letters_of_teams", text);
  desk.remove(team);
}

TEST_F(LetterDeskTest, sends_nothing_without_a_slot_until_credit_comes) {
  desk.add(team, team_name);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(send(), LetterDesk::Sent::yes);
  EXPECT_EQ(send(), LetterDesk::Sent::no_slot);
  EXPECT_EQ(send(0, 1), LetterDesk::Sent::yes) << "another place";
  EXPECT_EQ(send(1), LetterDesk::Sent::yes) << "another neighbour";
  desk.on_letter(10, letter(1, {alone, 1}));
  desk.wake_touched();
  EXPECT_EQ(team.looks, 1);
  EXPECT_EQ(send(), LetterDesk::Sent::yes);
  EXPECT_EQ(send(), LetterDesk::Sent::no_slot);
  desk.remove(team);
}

TEST_F(LetterDeskTest, counts_a_letter_for_a_team_that_is_not_there_but_no_credit) {
  desk.on_letter(10, letter(1, {0, 0}));
  EXPECT_EQ(desk.unknown(), 1u);
  desk.on_letter(10, letter(1, {alone, 0}));
  EXPECT_EQ(desk.unknown(), 1u) << "it may come after the team has gone";
  desk.add(team, team_name);
  desk.on_letter(10, letter(1, {0, 0}));
  EXPECT_TRUE(desk.take(team, 0, 0)) << "nothing of the first was kept";
  desk.remove(team);
  desk.on_letter(10, letter(1, {1, 0}));
  EXPECT_EQ(desk.unknown(), 2u);
  ASSERT_EQ(odd.size(), 1u) << "it is told of the first alone";
  EXPECT_EQ(odd[0].fault, OddLetter::Fault::unknown_team);
  EXPECT_EQ(odd[0].from, 10u);
  EXPECT_EQ(odd[0].team, team_name);
  desk.wake_touched();
  EXPECT_EQ(team.looks, 0) << "it was removed before the walk";
  EXPECT_EQ(desk.refused(), 0u);
}

TEST_F(LetterDeskTest, counts_what_breaks_the_rules_and_does_nothing) {
  desk.add(team, team_name);
  DeskBytes of_another_kind = letter(1, {0, 0});
  of_another_kind[14] = std::byte{1};
  const std::vector<std::pair<Rank, DeskBytes>> bad = {
      {10, letter(0, {0, 0})},
      {30, letter(3, {0, 0})},
      {20, letter(1, {0, 0})},
      {10, letter(1, {0, 0}, 8, 2)},
      {10, letter(1, {0, 0}, desk_shape.slot_bytes - 7)},
      {10, letter(1, {2, 0})},
      {10, letter(1, {0, 3})},
      {10, of_another_kind},
      {10, DeskBytes(sizeof(LetterAddress) + sizeof(LetterHead) - 1)},
      {10, {}},
  };
  for (const auto& [from, bytes] : bad) desk.on_letter(from, bytes);
  DeskBytes torn = letter(1, {0, 0}, 0);
  torn.pop_back();
  desk.on_letter(10, torn);
  EXPECT_EQ(desk.refused(), bad.size() + 1);
  EXPECT_EQ(desk.unknown(), 0u);
  ASSERT_EQ(odd.size(), 1u) << "it is told of the first alone";
  EXPECT_EQ(odd[0].fault, OddLetter::Fault::breaks_rules);
  EXPECT_EQ(odd[0].from, 10u);
  EXPECT_EQ(odd[0].team, team_name);
  for (const std::uint32_t neighbour : {0, 1})
    for (const std::uint32_t place : {0, 1}) EXPECT_FALSE(desk.take(team, neighbour, place));
  desk.wake_touched();
  EXPECT_EQ(team.looks, 0);
  desk.remove(team);
}

TEST_F(LetterDeskTest, tells_of_credit_where_the_neighbour_may_have_no_slot) {
  desk.add(team, team_name);
  file_and_consume(0);
  EXPECT_TRUE(transport.sent.empty());
  file_and_consume(1);
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_EQ(transport.sent[0].first, 10u);
  DeskBytes expected = letter(0, {alone, 2});
  EXPECT_EQ(transport.sent[0].second, expected);
  EXPECT_EQ(desk.sent(), 0u) << "it is no letter of a call";
  EXPECT_FALSE(desk.has_refused());
  desk.remove(team);
}

TEST_F(LetterDeskTest, tries_credit_again_that_was_refused_until_it_goes) {
  desk.add(team, team_name);
  transport.is_full = true;
  for (const std::uint64_t number : {0, 1}) file_and_consume(number);
  EXPECT_TRUE(desk.has_refused());
  EXPECT_EQ(rouses, 1);
  desk.retry_refused();
  EXPECT_TRUE(desk.has_refused());
  EXPECT_EQ(transport.tries, 2) << "once a turn";
  file_and_consume(2);
  transport.is_full = false;
  desk.retry_refused();
  EXPECT_FALSE(desk.has_refused());
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_EQ(transport.sent[0].second, letter(0, {alone, 3})) << "it tells of all that were consumed meanwhile";
  EXPECT_EQ(rouses, 1) << "the agent comes back by itself";
  desk.remove(team);
}

TEST_F(LetterDeskTest, has_a_team_look_again_whose_letter_found_no_memory) {
  desk.add(team, team_name);
  transport.lacks_memory = true;
  EXPECT_EQ(send(), LetterDesk::Sent::no_room);
  EXPECT_TRUE(desk.has_refused());
  EXPECT_EQ(rouses, 1);
  transport.lacks_memory = false;
  desk.retry_refused();
  EXPECT_EQ(team.looks, 1);
  EXPECT_FALSE(desk.has_refused());
  EXPECT_EQ(send(), LetterDesk::Sent::yes);
  desk.remove(team);
}

// The agent takes a turn each time that it is roused, and in between.
TEST_F(LetterDeskTest, keeps_its_time_with_a_letter_that_never_finds_memory) {
  desk.add(team, team_name);
  transport.lacks_memory = true;
  team.on_look = [&] { EXPECT_EQ(send(), LetterDesk::Sent::no_room); };
  team.on_look();
  Agenda agenda;
  for (std::uint64_t now_ns = 1'000'000'000; now_ns < 1'010'000'000; now_ns += 1'000) {
    desk.look_after_refused(agenda, now_ns);
    ASSERT_TRUE(agenda.needs_clock());
  }
  EXPECT_EQ(team.looks, 9) << "a try a millisecond, whatever turns come between";
  EXPECT_EQ(rouses, 1);
  transport.lacks_memory = false;
  team.on_look = [&] { EXPECT_EQ(send(), LetterDesk::Sent::yes); };
  desk.look_after_refused(agenda, 1'020'000'000);
  EXPECT_FALSE(agenda.needs_clock());
  desk.remove(team);
}

TEST_F(LetterDeskTest, forgets_on_its_agenda_who_has_gone) {
  desk.add(team, team_name);
  transport.lacks_memory = true;
  EXPECT_EQ(send(), LetterDesk::Sent::no_room);
  Agenda agenda;
  desk.look_after_refused(agenda, 1'000'000);
  EXPECT_TRUE(agenda.needs_clock());
  desk.remove(team);
  desk.look_after_refused(agenda, 3'000'000);
  EXPECT_FALSE(agenda.needs_clock());
  EXPECT_EQ(team.looks, 0);
}

TEST_F(LetterDeskTest, stops_where_two_threads_would_try_again) {
  desk.add(team, team_name);
  transport.lacks_memory = true;
  EXPECT_EQ(send(), LetterDesk::Sent::no_room);
  team.on_look = [&] { desk.retry_refused(); };
  EXPECT_DEATH(desk.retry_refused(), "two threads");
  desk.remove(team);
}

TEST_F(LetterDeskTest, stops_at_a_second_team_of_one_name_and_at_one_that_ends_while_letters_come) {
  desk.add(team, team_name);
  EXPECT_DEATH(desk.add(team, team_name + 1), "come already");
  DeskTeam other(0);
  EXPECT_DEATH(desk.add(other, team_name), "two teams");
  const auto end_too_early = [&] {
    DeskTeam ends(0);
    desk.add(ends, team_name + 1);
  };
  EXPECT_DEATH(end_too_early(), "still come");
  desk.remove(team);
}

TEST_F(LetterDeskTest, stops_at_a_letter_to_no_neighbour_to_no_place_or_longer_than_a_slot) {
  desk.add(team, team_name);
  EXPECT_DEATH((void)send(desk_shape.neighbours), "no neighbour");
  EXPECT_DEATH((void)send(0, desk_shape.places), "no place");
  const DeskBytes longer(desk_shape.slot_bytes - sizeof(std::uint64_t) + 1);
  EXPECT_DEATH((void)desk.send(team, 0, 0, {.round = 5, .content = longer}), "longer than a slot");
  desk.remove(team);
}

TEST_F(LetterDeskTest, keeps_in_mind_nothing_of_a_team_that_was_not_added) {
  transport.lacks_memory = true;
  EXPECT_EQ(send(), LetterDesk::Sent::no_room);
  EXPECT_FALSE(desk.has_refused());
  desk.add(team, team_name);
  desk.remove(team);
  EXPECT_EQ(send(), LetterDesk::Sent::no_room);
  EXPECT_FALSE(desk.has_refused());
  EXPECT_EQ(rouses, 0);
}

TEST_F(LetterDeskTest, leaves_who_finds_no_room_to_the_transport_which_wakes_it) {
  desk.add(team, team_name);
  transport.is_full = true;
  EXPECT_EQ(send(), LetterDesk::Sent::no_room);
  EXPECT_FALSE(desk.has_refused());
  transport.is_full = false;
  EXPECT_EQ(send(), LetterDesk::Sent::yes);
  DeskBytes expected = letter(0, {0, 0}, 0);
  expected[sizeof(LetterAddress) + sizeof(LetterHead)] = std::byte{5};
  EXPECT_EQ(transport.sent.back().second, expected) << "a letter that was refused has taken no number";
  desk.remove(team);
}

TEST_F(LetterDeskTest, forgets_what_a_team_that_goes_owed) {
  desk.add(team, team_name);
  DeskTeam other(0);
  desk.add(other, team_name + 1);
  transport.is_full = true;
  for (const std::uint64_t number : {0, 1}) file_and_consume(number);
  for (const std::uint64_t number : {0, 1}) {
    desk.on_letter(10, letter(1, {number, 0}, 8, 0, team_name + 1));
    desk.consumed(other, 0, 0);
  }
  desk.remove(team);
  transport.is_full = false;
  desk.retry_refused();
  EXPECT_EQ(transport.sent.size(), 1u);
  EXPECT_EQ(other.looks, 0) << "nobody waits for credit to have gone";
  EXPECT_EQ(team.looks, 0);
  desk.remove(other);
}

TEST_F(LetterDeskTest, sends_no_longer_letters_than_each_neighbours_road_carries) {
  EXPECT_EQ(desk.most_content(team), desk_shape.slot_bytes - sizeof(std::uint64_t));
  transport.narrow = 20;
  EXPECT_EQ(desk.most_content(team), 64 - LetterDesk::overhead_bytes);
  transport.narrow_bytes = LetterDesk::overhead_bytes;
  EXPECT_EQ(desk.most_content(team), 0u) << "an empty one";
  transport.narrow_bytes = LetterDesk::overhead_bytes - 1;
  EXPECT_EQ(desk.most_content(team), std::nullopt);
}

// Whoever removes a team while the agent is in a call for it: that is held up until the removing thread has had ample
// opportunity to return, which it must not take.
class RemovedBesideTheAgent : public LetterDeskTest {
 protected:
  // To be called in the agent's thread, inside what a team that goes has to wait for.
  void be_inside() {
    is_inside = true;
    while (!may_end) std::this_thread::yield();
    has_ended = true;
  }
  void expect_remove_waits(const std::function<void()>& agents_turn) {
    expect_remove_waits(agents_turn, [this] { desk.remove(team); });
  }
  void expect_remove_waits(const std::function<void()>& agents_turn, const std::function<void()>& remove) {
    std::thread agent(agents_turn);
    while (!is_inside) std::this_thread::yield();
    std::thread observer([this] {
      // The team is gone for letters as soon as it is being removed.
      while (desk.unknown() == 0) {
        desk.on_letter(20, letter(2, {0, 0}));
        std::this_thread::yield();
      }
      for (int i = 0; i < 1'000 && !has_returned; ++i) std::this_thread::yield();
      may_end = true;
    });
    remove();
    EXPECT_TRUE(has_ended);
    has_returned = true;
    agent.join();
    observer.join();
  }

  std::atomic<bool> is_inside{false}, may_end{false}, has_ended{false}, has_returned{false};
};

TEST_F(RemovedBesideTheAgent, waits_for_who_looks_again) {
  desk.add(team, team_name);
  team.on_look = [this] { be_inside(); };
  desk.on_letter(10, letter(1, {0, 0}));
  expect_remove_waits([this] { desk.wake_touched(); });
}

TEST_F(RemovedBesideTheAgent, goes_whole_by_a_thread_that_is_cancelled_while_it_waits) {
  desk.add(team, team_name);
  team.on_look = [this] { be_inside(); };
  desk.on_letter(10, letter(1, {0, 0}));
  const auto remove_cancelled = [this] {
    std::thread([this] {
      pthread_cancel(pthread_self());
      desk.remove(team);
    }).join();
  };
  expect_remove_waits([this] { desk.wake_touched(); }, remove_cancelled);
}

TEST_F(RemovedBesideTheAgent, waits_for_who_has_it_try_a_letter_again) {
  desk.add(team, team_name);
  transport.lacks_memory = true;
  EXPECT_EQ(send(), LetterDesk::Sent::no_room);
  team.on_look = [this] { be_inside(); };
  expect_remove_waits([this] { desk.retry_refused(); });
}

TEST_F(RemovedBesideTheAgent, waits_for_who_sends_its_credit_and_is_not_put_back_where_that_is_refused) {
  desk.add(team, team_name);
  transport.is_full = true;
  for (const std::uint64_t number : {0, 1}) file_and_consume(number);
  transport.on_try = [this] { be_inside(); };
  expect_remove_waits([this] { desk.retry_refused(); });
  EXPECT_FALSE(desk.has_refused());
}

// Teams come and go while an agent serves and walks, and others' letters come all the time.
TEST_F(LetterDeskTest, lets_teams_come_and_go_beside_the_agent) {
  constexpr int teams = 400;
  std::atomic<std::uint64_t> name{0};
  std::atomic<bool> is_over{false};
  int looks = 0;
  std::thread agent([&] {
    while (!is_over) {
      for (std::uint64_t number : {0, 1, 2}) {
        desk.on_letter(10, letter(1, {number, 0}, 8, 0, name));
        desk.on_letter(20, letter(2, {number, 0}, 100, 1, name + 1));
      }
      desk.wake_touched();
      desk.retry_refused();
    }
  });
  for (int i = 0; i < teams; ++i) {
    const std::unique_ptr<DeskTeam> first = std::make_unique<DeskTeam>(0), second = std::make_unique<DeskTeam>(0);
    desk.add(*first, name);
    desk.add(*second, name + 1);
    transport.is_full = i % 2 == 0;
    for (int taken = 0; taken < 2;) {
      if (!desk.take(*first, 0, 0)) {
        std::this_thread::yield();
        continue;
      }
      desk.consumed(*first, 0, 0);
      ++taken;
    }
    // Credit that is refused is tried again beside each second of them that go.
    for (const int tried = transport.tries; i % 4 == 0 && transport.tries == tried;) std::this_thread::yield();
    desk.remove(i % 3 == 0 ? *second : *first);
    desk.remove(i % 3 == 0 ? *first : *second);
    ++name;
    looks += first->looks + second->looks;
  }
  is_over = true;
  agent.join();
  EXPECT_GT(looks, 0) << "nobody looked beside those that went";
  EXPECT_GT(transport.tries, teams + teams / 4 - 1) << "no credit was tried again";
}

TEST(LetterNeighbours, are_neighbours_of_each_other) {
  for (const std::uint32_t degree : {2, 3, 8}) {
    for (const std::uint32_t nodes : {2, 3, 12, 13, 31, 32, 33, 64, 65, 1000}) {
      const std::size_t expected = LetterNeighbours::of(nodes, 0, degree).ranks.size();
      std::vector<LetterNeighbours> of_node;
      for (std::uint32_t node = 0; node < nodes; ++node) of_node.push_back(LetterNeighbours::of(nodes, node, degree));
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const LetterNeighbours& mine = of_node[node];
        ASSERT_EQ(mine.ranks.size(), expected);
        ASSERT_EQ(mine.by_node[node], LetterNeighbours::none);
        for (std::uint32_t other = 0; other < nodes; ++other) {
          if (mine.by_node[other] == LetterNeighbours::none) continue;
          ASSERT_LT(mine.by_node[other], expected);
          ASSERT_NE(of_node[other].by_node[node], LetterNeighbours::none);
        }
      }
    }
  }
}

}  // namespace
}  // namespace farsum
