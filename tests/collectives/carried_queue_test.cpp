// Calls that a rank has begun: which are entered, which wait, and who takes one over.
#include "collectives/carried_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "carried_node.hpp"

namespace farsum {
namespace {

using CallKind = CarriedCall::Kind;
using Seen = CarriedQueue::Seen;
using State = CarriedRequest::State;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint64_t> numbers_of(const CarriedQueue::Whole& whole) {
  return {whole.numbers.begin(), whole.numbers.begin() + whole.count};
}

// Two ranks; the test begins what becomes whole, and ends it with the first rank's part for an answer.
class Queues : public testing::Test {
 protected:
  CarriedNode::Member& member(std::uint32_t rank) { return node_.members[rank]; }
  std::shared_ptr<CarriedRequest> make(std::uint32_t rank, std::uint64_t first) {
    const auto& request = words_.emplace_back(CallKind::broadcast, 1, first).request;
    EXPECT_TRUE(member(rank).memory.stage(*request, "begin").is_ok());
    request->said = said_of(request->call, 0);
    return request;
  }
  std::shared_ptr<CarriedRequest> add(std::uint32_t rank, std::uint64_t first = 0) {
    const auto request = make(rank, first);
    end(numbers_of(queue(rank).add(request)));
    return request;
  }
  void end(const std::vector<std::uint64_t>& whole) {
    for (const std::uint64_t number : whole) {
      const CarriedMemory& memory = member(0).memory;
      const CarriedCall call = *call_in(memory.part(number, 0).said);
      std::memcpy(memory.answer_of(number, call), memory.data_of(number, 0, 8), 8);
      member(0).bells.conclude(number);
    }
  }
  CarriedQueue& queue(std::uint32_t rank) { return rank == 0 ? of_first_ : of_second_; }
  Seen look(std::uint32_t rank, CarriedRequest& request) {
    const CarriedQueue::Look look = queue(rank).look(request);
    end(numbers_of(look.whole));
    return look.seen;
  }

 private:
  Mailboxes boxes_;
  CarriedNode node_{{0, 0}, 0, boxes_};
  std::deque<WordsOfRank> words_;
  CarriedQueue of_first_{member(0).memory, member(0).bells, member(0).help};
  CarriedQueue of_second_{member(1).memory, member(1).bells, member(1).help};
};

TEST_F(Queues, tell_the_last_to_come_alone_that_a_call_is_whole) {
  EXPECT_THAT(numbers_of(queue(0).add(make(0, 7))), IsEmpty());
  EXPECT_THAT(numbers_of(queue(0).add(make(0, 8))), IsEmpty());
  EXPECT_THAT(numbers_of(queue(1).add(make(1, 0))), ElementsAre(0));
  EXPECT_THAT(numbers_of(queue(1).add(make(1, 0))), ElementsAre(1));
}

TEST_F(Queues, have_a_call_fetched_by_who_finds_it_over_and_taken_over_once) {
  const auto mine = add(0, 7);
  EXPECT_EQ(look(0, *mine), Seen::under_way);
  EXPECT_EQ(member(0).help.under_way, 1);
  const auto theirs = add(1);
  EXPECT_EQ(look(1, *theirs), Seen::over);
  EXPECT_EQ(word_at(theirs->answer.get(), 0), 7u);
  EXPECT_EQ(member(1).help.under_way, 0);
  EXPECT_EQ(queue(1).take_over(*theirs).seen, Seen::over);
  EXPECT_EQ(queue(1).take_over(*theirs).seen, Seen::of_another_thread);
  EXPECT_EQ(look(1, *theirs), Seen::of_another_thread);
  EXPECT_EQ(queue(1).open_requests(), 1u);
  queue(1).let_go();
  EXPECT_EQ(queue(1).open_requests(), 0u);
}

// What is queued is copied, for its memory is the program's when it has begun.
TEST_F(Queues, enter_calls_in_their_order_as_places_open) {
  std::vector<std::shared_ptr<CarriedRequest>> first, second;
  for (std::uint64_t i = 0; i < CarriedMemory::places + 2; ++i) {
    first.push_back(add(0, i));
    EXPECT_EQ(first.back()->state, i < CarriedMemory::places ? State::entered : State::queued);
    EXPECT_EQ(first.back()->mine, nullptr);
    EXPECT_EQ(first.back()->staged != nullptr, i >= CarriedMemory::places);
  }
  for (std::uint64_t i = 0; i < CarriedMemory::places; ++i) second.push_back(add(1));
  EXPECT_THAT(member(0).help.rung, testing::Contains(1u));  // the first place is wanted
  EXPECT_EQ(first[CarriedMemory::places]->state, State::queued);
  // The second rank fetches what keeps the place, though nobody asks for it.
  second.push_back(add(1));
  EXPECT_EQ(second[0]->state, State::fetched);
  end(numbers_of(queue(0).advance()));
  EXPECT_EQ(first[0]->state, State::fetched);
  EXPECT_EQ(first[CarriedMemory::places]->state, State::entered);
  EXPECT_EQ(first[CarriedMemory::places + 1]->state, State::queued);
  // It is entered by the look, and whole.
  EXPECT_EQ(look(1, *second[CarriedMemory::places]), Seen::under_way);
  EXPECT_EQ(look(1, *second[CarriedMemory::places]), Seen::over);
  EXPECT_EQ(word_at(second[CarriedMemory::places]->answer.get(), 0), CarriedMemory::places);
}

TEST_F(Queues, of_a_broken_group_give_up_what_has_no_outcome) {
  const auto over = add(0);
  add(1);
  const auto entered = add(0);
  for (std::uint64_t i = 2; i < CarriedMemory::places; ++i) add(0);
  const auto queued = add(0);
  member(0).memory.broken().set({1, CarriedFinding::What::cut_off, {}, {}});
  for (const auto& request : {over, entered, queued}) EXPECT_EQ(look(0, *request), Seen::over);
  EXPECT_EQ(over->found.what, CarriedFinding::What::the_same);
  EXPECT_EQ(entered->found.what, CarriedFinding::What::cut_off);
  EXPECT_EQ(queued->found.what, CarriedFinding::What::cut_off);
  EXPECT_EQ(member(0).help.under_way, static_cast<int>(CarriedMemory::places) - 2);
}

TEST_F(Queues, turn_the_agent_away_while_a_thread_is_at_them_and_ring_it_behind_that) {
  bool was_held = false;
  member(0).help.when_counting = [&] { std::thread([&] { was_held = !queue(0).try_to_advance(); }).join(); };
  add(0);
  EXPECT_TRUE(was_held);
  EXPECT_THAT(member(0).help.rung, ElementsAre(0));
  member(0).help.when_counting = {};
  const auto advanced = queue(0).try_to_advance();
  ASSERT_TRUE(advanced);
  EXPECT_FALSE(advanced->has_changed);
}

}  // namespace
}  // namespace farsum
