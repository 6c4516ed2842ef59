// The slots and the credit of a team's letters: alone, between two threads, and under trees that fill every slot.
#include "collectives/letters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "transport/sim/sim_random.hpp"
#include "trees/walk.hpp"

namespace farsum {
namespace {

using LetterBytes = std::vector<std::byte>;

struct RoadLetter {
  LetterHead head;
  std::uint64_t value;

  Letters::Filed file_in(Letters& letters, std::uint32_t channel) const {
    const bool is_credit = head.number == LetterHead::credit_alone;
    return letters.file(channel, head, std::as_bytes(std::span(&value, is_credit ? 0 : 1)));
  }
};

// Slots in zeroed memory of their own.
class OwnedLetters {
 public:
  explicit OwnedLetters(const Letters::Shape& shape)
      : lines_((Letters::footprint(shape) + sizeof(Line) - 1) / sizeof(Line)), letters(lines_[0].bytes, shape) {}

 private:
  struct alignas(2 * cache_line_bytes) Line {
    std::byte bytes[2 * cache_line_bytes] = {};
  };
  std::vector<Line> lines_;

 public:
  Letters letters;
};

class LettersTest : public testing::Test {
 protected:
  static constexpr std::uint32_t near = 0, far = 1;
  static constexpr Letters::Shape shape{.neighbours = 2, .slots = 2, .slot_bytes = 112};

  Letters::Filed file(std::uint64_t number, std::uint64_t consumed = 0, std::size_t bytes = 8,
                      std::uint32_t channel = far) {
    return letters.file(channel, {number, consumed}, LetterBytes(bytes, static_cast<std::byte>(number)));
  }
  Letters::Filed file_credit(std::uint64_t consumed, std::size_t bytes = 0) {
    return file(LetterHead::credit_alone, consumed, bytes);
  }
  void send(std::uint32_t to = far) {
    ASSERT_TRUE(letters.has_room(to));
    letters.sent(to);
  }

  OwnedLetters owned{shape};
  Letters& letters = owned.letters;
};

TEST_F(LettersTest, gives_out_each_letter_in_order_until_it_is_consumed) {
  EXPECT_FALSE(letters.take(far));
  EXPECT_EQ(file(0, 0, 0), Letters::Filed::letter);
  EXPECT_EQ(file(1, 0, shape.slot_bytes), Letters::Filed::letter);
  EXPECT_FALSE(letters.take(near)) << "another neighbour's";
  ASSERT_TRUE(letters.take(far));
  EXPECT_TRUE(letters.take(far)->empty());
  EXPECT_TRUE(letters.take(far)->empty()) << "the same until it is consumed";
  letters.consumed(far);
  ASSERT_TRUE(letters.take(far));
  EXPECT_EQ(letters.take(far)->size(), shape.slot_bytes);
  EXPECT_EQ(letters.take(far)->back(), std::byte{1});
  letters.consumed(far);
  EXPECT_FALSE(letters.take(far));
}

TEST_F(LettersTest, gives_out_in_order_what_was_filed_out_of_it) {
  for (std::uint64_t number = 0; number != 8; number += 2) {
    EXPECT_EQ(file(number + 1), Letters::Filed::letter);
    EXPECT_FALSE(letters.take(far)) << "letter " << number << " is missing";
    EXPECT_EQ(file(number), Letters::Filed::letter);
    for (const std::uint64_t next : {number, number + 1}) {
      ASSERT_TRUE(letters.take(far));
      EXPECT_EQ(letters.take(far)->front(), static_cast<std::byte>(next));
      letters.consumed(far);
    }
  }
}

TEST_F(LettersTest, keeps_letters_of_each_length_whole) {
  const std::size_t line = Letters::short_bytes;
  for (std::uint64_t number = 0; const std::size_t bytes : {line - 1, line, line + 1, shape.slot_bytes, line}) {
    ASSERT_EQ(file(number++, 0, bytes), Letters::Filed::letter);
    ASSERT_TRUE(letters.take(far));
    EXPECT_EQ(LetterBytes(letters.take(far)->begin(), letters.take(far)->end()),
              LetterBytes(bytes, static_cast<std::byte>(number - 1)));
    letters.consumed(far);
  }
}

TEST_F(LettersTest, have_a_page_for_the_barriers_of_many_neighbours_and_places) {
  const Letters::Shape wide{.neighbours = 4, .slots = 2, .places = 4};
  EXPECT_EQ(Letters::zeroed_bytes(wide), 16 * (2 + 2) * cache_line_bytes);
  EXPECT_EQ(Letters::footprint(wide), Letters::zeroed_bytes(wide) + 16 * 2 * wide.slot_bytes);
  Letters::Shape narrow = wide;
  narrow.slot_bytes = Letters::short_bytes;
  EXPECT_EQ(Letters::footprint(narrow), Letters::zeroed_bytes(narrow)) << "they need no slots";
}

TEST_F(LettersTest, keep_the_places_of_a_neighbour_apart) {
  const Letters::Shape places{.neighbours = 2, .slots = 2, .slot_bytes = 112, .places = 3};
  OwnedLetters wide(places);
  for (std::uint32_t place = 0; place != places.places; ++place) {
    for (const std::uint32_t neighbour : {near, far}) {
      const std::uint32_t channel = wide.letters.channel(neighbour, place);
      EXPECT_FALSE(wide.letters.take(channel));
      const LetterBytes content(64, static_cast<std::byte>(channel));
      EXPECT_EQ(wide.letters.file(channel, {0, 0}, content), Letters::Filed::letter);
      EXPECT_EQ(wide.letters.take(channel)->back(), static_cast<std::byte>(channel));
    }
  }
  wide.letters.consumed(wide.letters.channel(near, 1));
  for (std::uint32_t channel = 0; channel != places.channels(); ++channel)
    EXPECT_EQ(wide.letters.take(channel).has_value(), channel != wide.letters.channel(near, 1));
}

TEST_F(LettersTest, refuses_what_nobody_who_keeps_the_rules_sends) {
  EXPECT_EQ(file(0, 0, 8, 2), Letters::Filed::refused) << "no neighbour";
  EXPECT_EQ(file(0, 0, shape.slot_bytes + 1), Letters::Filed::refused);
  EXPECT_EQ(file(2), Letters::Filed::refused) << "no slot is free for it";
  EXPECT_EQ(file(0, 3), Letters::Filed::refused) << "more was consumed than may have been sent";
  EXPECT_EQ(file_credit(0, 1), Letters::Filed::refused) << "credit has no content";
  EXPECT_FALSE(letters.take(far));
  EXPECT_TRUE(letters.has_room(far));
  EXPECT_EQ(file(0, 2), Letters::Filed::letter);
  EXPECT_EQ(file(0, 2), Letters::Filed::refused) << "twice";
  EXPECT_EQ(file(1, 5), Letters::Filed::refused);
  EXPECT_EQ(file(1, 2), Letters::Filed::letter);
  EXPECT_EQ(file(1, 2), Letters::Filed::refused) << "twice";
  EXPECT_EQ(file(2, 2), Letters::Filed::refused) << "no slot is free";
  letters.consumed(far);
  EXPECT_EQ(file(0, 2), Letters::Filed::refused) << "it was consumed";
  EXPECT_EQ(file(2, 2), Letters::Filed::letter);
}

TEST_F(LettersTest, has_room_for_two_until_one_was_consumed) {
  send();
  send();
  EXPECT_FALSE(letters.has_room(far));
  EXPECT_TRUE(letters.has_room(near));
  EXPECT_EQ(letters.head_of_next(far).number, 2u);
  EXPECT_EQ(file_credit(1), Letters::Filed::credit);
  send();
  EXPECT_FALSE(letters.has_room(far));
  EXPECT_EQ(file(0, 3), Letters::Filed::letter) << "a letter brings credit, too";
  send();
  send();
  EXPECT_FALSE(letters.has_room(far));
}

TEST_F(LettersTest, forgets_no_credit_for_a_letter_that_was_overtaken) {
  send();
  send();
  EXPECT_EQ(file(1, 2), Letters::Filed::letter);
  EXPECT_EQ(file(0, 1), Letters::Filed::letter) << "it was sent before";
  send();
  EXPECT_TRUE(letters.has_room(far));
  EXPECT_EQ(file_credit(0), Letters::Filed::credit);
  send();
  EXPECT_FALSE(letters.has_room(far));
}

TEST_F(LettersTest, has_room_though_a_neighbour_lies_about_what_was_never_sent) {
  ASSERT_EQ(file_credit(shape.slots), Letters::Filed::credit);
  ASSERT_EQ(file_credit(2 * shape.slots), Letters::Filed::credit);
  for (std::uint32_t i = 0; i < 3 * shape.slots; ++i) send();
  EXPECT_FALSE(letters.has_room(far));
  EXPECT_EQ(file_credit(2 * shape.slots + 1), Letters::Filed::credit);
  EXPECT_TRUE(letters.has_room(far));
}

TEST_F(LettersTest, tells_of_credit_with_the_next_letter_or_alone_where_the_neighbour_may_have_none) {
  for (std::uint64_t number = 0; number != 2; ++number) file(number);
  letters.consumed(far);
  EXPECT_FALSE(letters.owes_credit(far)) << "one slot is free, as it knows";
  letters.consumed(far);
  EXPECT_TRUE(letters.owes_credit(far));
  EXPECT_EQ(letters.credit(far), (LetterHead{LetterHead::credit_alone, 2}));
  EXPECT_EQ(letters.head_of_next(far), (LetterHead{0, 2}));
  letters.sent(far);
  EXPECT_FALSE(letters.owes_credit(far)) << "the letter has told of it";
  for (std::uint64_t number = 2; number != 4; ++number) {
    file(number);
    letters.consumed(far);
  }
  ASSERT_TRUE(letters.owes_credit(far));
  letters.credit_sent(far);
  EXPECT_FALSE(letters.owes_credit(far));
  EXPECT_EQ(letters.head_of_next(far), (LetterHead{1, 4})) << "credit has no number of its own";
}

TEST_F(LettersTest, tells_of_credit_alone_at_half_of_many_slots) {
  for (const std::uint32_t slots : {1, 2, 3, 4, 8}) {
    OwnedLetters of_more({.neighbours = 1, .slots = slots, .slot_bytes = 48});
    std::uint64_t number = 0;
    while (!of_more.letters.owes_credit(0)) {
      ASSERT_EQ(of_more.letters.file(0, {number++, 0}, {}), Letters::Filed::letter);
      of_more.letters.consumed(0);
    }
    EXPECT_EQ(number, slots < 4 ? slots : slots / 2);
  }
}

// One thread serves and one walks, each as fast as it can. Who serves asks for no credit: what comes too early is
// refused and comes again, so that only the letters themselves order what the threads read and write.
// Takes seconds: two threads, many thousand letters.
TEST_F(LettersTest, lets_one_thread_file_while_another_takes) {
  constexpr std::uint64_t count = 5'000;
  std::thread serves([&] {
    for (std::uint64_t number = 0; number != count; ++number) {
      std::array<std::uint64_t, 14> content;
      content.fill(number);
      while (letters.file(far, {number, 0}, std::as_bytes(std::span(content))) == Letters::Filed::refused)
        std::this_thread::yield();
    }
  });
  bool is_whole = true;
  for (std::uint64_t number = 0; number != count;) {
    const auto letter = letters.take(far);
    if (!letter) {
      std::this_thread::yield();
      continue;
    }
    std::array<std::uint64_t, 14> content{};
    std::memcpy(content.data(), letter->data(), std::min(letter->size(), sizeof content));
    is_whole = is_whole && std::all_of(content.begin(), content.end(), [&](auto word) { return word == number; });
    letters.consumed(far);
    ++number;
  }
  serves.join();
  EXPECT_TRUE(is_whole);
}

// ---- trees

constexpr std::uint32_t tree_nodes = 6;

// Letters on their way between nodes, and so few at once that senders find no room. They come in order, or in any where
// roads are crooked.
class Roads {
 public:
  static constexpr std::size_t most = 2 * 2 + 1;  // two slots each way, and credit

  bool try_letter(std::uint32_t from, std::uint32_t to, const LetterHead& head, std::uint64_t value) {
    std::deque<RoadLetter>& road = roads_[from][to];
    peak = std::max(peak, road.size());
    if (road.size() == limit) return false;
    road.push_back({head, value});
    ++(head.number == LetterHead::credit_alone ? credits : letters);
    return true;
  }
  std::deque<RoadLetter>& road(std::uint32_t from, std::uint32_t to) { return roads_[from][to]; }

  std::size_t limit = 2;
  std::size_t peak = 0;
  std::uint64_t letters = 0, credits = 0;
  bool loses_credit = false;
  bool are_crooked = false;

 private:
  std::deque<RoadLetter> roads_[tree_nodes][tree_nodes];
};

// One node's part of a team that does one collective over and over, as fast as it may.
class WalkingNode final : public trees::Carrier {
 public:
  WalkingNode(Roads& roads, const trees::Shape& tree, std::uint32_t node)
      : roads_(roads),
        tree_(tree),
        node_(node),
        steps_(trees::steps_of(tree, node)),
        owned_({.neighbours = tree_nodes, .slots = 2, .slot_bytes = sizeof(std::uint64_t)}) {
    begin();
  }

  // Goes on as far as it may; whether that was any further. Credit leaves when there is room for it on the road.
  bool walk(std::uint64_t rounds) {
    bool any = false;
    while (round != rounds) {
      const std::size_t before = at_;
      const bool is_over = trees::advance(steps_, at_, *this);
      any = any || at_ != before;
      if (!is_over) break;
      end();
    }
    return tell() || any;
  }
  Letters& letters() { return owned_.letters; }

  bool take(const trees::Step& step) override {
    const auto letter = letters().take(step.peer);
    if (!letter) return false;
    std::uint64_t value = 0;
    std::memcpy(&value, letter->data(), sizeof value);
    held_ = step.action == trees::Action::receive_copy ? value : held_ + value;
    letters().consumed(step.peer);
    return true;
  }
  bool send(const trees::Step& step) override {
    if (!letters().has_room(step.peer)) {
      ++waits;
      return false;
    }
    if (!roads_.try_letter(node_, step.peer, letters().head_of_next(step.peer), held_)) return false;
    letters().sent(step.peer);
    return true;
  }

  std::uint64_t round = 0, waits = 0;
  bool is_right = true;

 private:
  static std::uint64_t value_of(std::uint32_t node, std::uint64_t round) { return (round + 1) << (8 * node % 40); }
  static std::uint64_t sum_of(std::uint64_t round) {
    std::uint64_t sum = 0;
    for (std::uint32_t node = 0; node != tree_nodes; ++node) sum += value_of(node, round);
    return sum;
  }
  void begin() {
    at_ = 0;
    held_ = value_of(node_, round);
  }
  void end() {
    const bool has_all = tree_.kind == trees::Kind::allreduce || node_ == tree_.root;
    if (tree_.kind == trees::Kind::broadcast) {
      is_right = is_right && held_ == value_of(tree_.root, round);
    } else if (has_all) {
      is_right = is_right && held_ == sum_of(round);
    }
    ++round;
    begin();
  }
  bool tell() {
    bool any = false;
    for (std::uint32_t peer = 0; peer != tree_nodes; ++peer) {
      if (!letters().owes_credit(peer)) continue;
      if (!roads_.loses_credit && !roads_.try_letter(node_, peer, letters().credit(peer), 0)) continue;
      letters().credit_sent(peer);
      any = true;
    }
    return any;
  }

  Roads& roads_;
  trees::Shape tree_;
  std::uint32_t node_;
  std::vector<trees::Step> steps_;
  OwnedLetters owned_;
  std::size_t at_ = 0;
  std::uint64_t held_ = 0;
};

// Teams over the same nodes, each with roads of its own.
class Teams {
 public:
  Teams(const std::vector<trees::Shape>& trees, std::uint64_t seed) : random_(seed) {
    for (const trees::Shape& tree : trees) {
      Team& team = *teams_.emplace_back(std::make_unique<Team>());
      for (std::uint32_t node = 0; node != tree_nodes; ++node) team.nodes.emplace_back(team.roads, tree, node);
    }
  }

  // `slow` walks once in eight times. False: nobody could go on, and some are not at their end.
  bool run(std::uint64_t rounds, std::uint32_t slow) {
    for (std::uint64_t idle = 0; !is_over(rounds);) {
      Team& team = *teams_[random_.below(teams_.size())];
      const auto node = static_cast<std::uint32_t>(random_.below(tree_nodes));
      const bool goes_on = (node != slow || random_.once_in(8)) && team.nodes[node].walk(rounds);
      idle = goes_on || deliver(team, node) ? 0 : idle + 1;
      if (idle > 20'000) return false;
    }
    return true;
  }
  bool is_right() const {
    return !was_refused_ && std::all_of(teams_.begin(), teams_.end(), [](const auto& team) {
      return std::all_of(team->nodes.begin(), team->nodes.end(), [](const WalkingNode& node) { return node.is_right; });
    });
  }
  Roads& roads(std::size_t team) { return teams_[team]->roads; }
  std::uint64_t waits(std::size_t team) const {
    std::uint64_t sum = 0;
    for (const WalkingNode& node : teams_[team]->nodes) sum += node.waits;
    return sum;
  }

 private:
  struct Team {
    Roads roads;
    std::deque<WalkingNode> nodes;
  };

  bool is_over(std::uint64_t rounds) const {
    return std::all_of(teams_.begin(), teams_.end(), [&](const auto& team) {
      return std::all_of(team->nodes.begin(), team->nodes.end(),
                         [&](const WalkingNode& node) { return node.round == rounds; });
    });
  }
  bool deliver(Team& team, std::uint32_t to) {
    const auto from = static_cast<std::uint32_t>(random_.below(tree_nodes));
    std::deque<RoadLetter>& road = team.roads.road(from, to);
    if (road.empty()) return false;
    const auto next =
        road.begin() + static_cast<std::ptrdiff_t>(team.roads.are_crooked ? random_.below(road.size()) : 0);
    was_refused_ = was_refused_ || next->file_in(team.nodes[to].letters(), from) == Letters::Filed::refused;
    road.erase(next);
    return true;
  }

  SimRandom random_;
  std::vector<std::unique_ptr<Team>> teams_;
  bool was_refused_ = false;
};

trees::Shape tree_of(trees::Kind kind, std::uint32_t root, std::uint32_t degree) {
  return {.kind = kind, .nodes = tree_nodes, .root = root, .elements = 1, .degree = degree};
}

TEST(LettersUnderTrees, go_on_both_ways_with_every_queue_full) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Teams teams({tree_of(trees::Kind::reduce, 0, 2), tree_of(trees::Kind::reduce, tree_nodes - 1, 3),
                 tree_of(trees::Kind::broadcast, tree_nodes - 1, 2), tree_of(trees::Kind::allreduce, 0, 2)},
                seed);
    for (std::size_t team = 0; team != 4; ++team) {
      teams.roads(team).limit = 1 + seed % 3;
      teams.roads(team).are_crooked = seed % 2 == 0;
    }
    ASSERT_TRUE(teams.run(60, static_cast<std::uint32_t>(seed % tree_nodes))) << "seed " << seed;
    EXPECT_TRUE(teams.is_right()) << "seed " << seed;
    for (std::size_t team = 0; team != 3; ++team) EXPECT_GT(teams.waits(team), 0u) << "no slot was ever full";
  }
}

// Sanitized code is ten times slower and more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t many_reduces = 10'000;
#else
constexpr std::uint64_t many_reduces = 100'000;
#endif

// In make test-all: many thousand reductions.
TEST(LettersUnderTrees, reduce_many_times_to_a_slow_root) {
  Teams teams({tree_of(trees::Kind::reduce, 2, 2)}, 7);
  teams.roads(0).limit = 1'000'000;
  ASSERT_TRUE(teams.run(many_reduces, 2));
  EXPECT_TRUE(teams.is_right());
  EXPECT_GT(teams.waits(0), many_reduces / 100);
  EXPECT_LE(teams.roads(0).peak, Roads::most) << "credit alone bounds what is under way";
  EXPECT_EQ(teams.roads(0).letters, many_reduces * (tree_nodes - 1));
  EXPECT_EQ(teams.roads(0).credits, many_reduces / 2 * (tree_nodes - 1));
}

TEST(LettersUnderTrees, reduce_many_times_over_roads_on_which_letters_overtake) {
  Teams teams({tree_of(trees::Kind::reduce, 2, 2), tree_of(trees::Kind::broadcast, 1, 2)}, 9);
  for (std::size_t team = 0; team != 2; ++team) {
    teams.roads(team).limit = 1'000'000;
    teams.roads(team).are_crooked = true;
  }
  ASSERT_TRUE(teams.run(many_reduces / 10, 2));
  EXPECT_TRUE(teams.is_right());
}

TEST(LettersUnderTrees, need_no_credit_alone_where_letters_go_both_ways) {
  Teams teams({tree_of(trees::Kind::allreduce, 0, 2)}, 3);
  ASSERT_TRUE(teams.run(1'000, tree_nodes));
  EXPECT_TRUE(teams.is_right());
  EXPECT_EQ(teams.roads(0).credits, 0u);
}

TEST(LettersUnderTrees, stand_still_where_credit_is_lost) {
  Teams teams({tree_of(trees::Kind::reduce, 0, 2)}, 3);
  teams.roads(0).loses_credit = true;
  EXPECT_FALSE(teams.run(100, tree_nodes)) << "or the tests above would not notice";
}

}  // namespace
}  // namespace farsum
