// Where ranks of a node leave what they bring to calls that nobody waits for.
#include "collectives/carried_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carried_node.hpp"

namespace farsum {
namespace {

using CallKind = CarriedCall::Kind;

TEST(CarriedMemory, has_what_is_short_in_slots_that_all_read_and_asks_for_none) {
  Mailboxes boxes;
  CarriedNode node({0, 0, 0}, 0, boxes);
  for (auto& member : node.members) member.leave(WordsOfRank(CallKind::allreduce, 3, 10 * member.rank).request, 1);
  EXPECT_EQ(node.extents.open(), 0);
  for (auto& reader : node.members) {
    for (std::uint32_t member = 0; member < 3; ++member) {
      EXPECT_EQ(word_at(reader.memory.data_of(1, member, 24), 2), 10 * member + 2);
      EXPECT_NE(reader.memory.data_of(1, member, 24), reader.memory.data_of(2, member, 24));
    }
  }
}

TEST(CarriedMemory, has_what_is_long_in_extents_and_the_answer_in_that_of_the_first) {
  Mailboxes boxes;
  CarriedNode node({0, 0}, 0, boxes);
  WordsOfRank first(CallKind::allreduce, 5'000, 1), second(CallKind::allreduce, 5'000, 2);
  node.members[0].leave(first.request, 0);
  node.members[1].leave(second.request, 0);
  EXPECT_EQ(node.extents.open(), 2);
  const CarriedMemory& memory = node.members[1].memory;
  EXPECT_TRUE(memory.reach_all(0, first.request->call));
  EXPECT_EQ(word_at(memory.data_of(0, 0, 40'000), 4'999), 5'000u);
  EXPECT_EQ(word_at(memory.data_of(0, 1, 40'000), 4'999), 5'001u);
  const std::byte* const answer = memory.answer_of(0, first.request->call);
  EXPECT_GE(answer, memory.data_of(0, 0, 40'000) + 40'000);
  EXPECT_LE(reinterpret_cast<std::uintptr_t>(answer) + 40'000, first.request->own.offset + first.request->own.bytes);
  node.members[1].help.can_reach = false;
  EXPECT_FALSE(memory.reach_all(0, first.request->call));
  for (const auto& words : {&first, &second}) node.extents.give_back(words->request->own);
}

TEST(CarriedMemory, says_of_which_call_it_has_none_and_has_cut_nothing_then) {
  Mailboxes boxes;
  CarriedNode node({0}, 0, boxes);
  node.members[0].help.is_full = true;
  const WordsOfRank words(CallKind::broadcast, 5'000, 0);
  const Status status = node.members[0].memory.stage(*words.request, "farsum_collect");
  EXPECT_EQ(status.code(), Code::no_memory);
  EXPECT_THAT(status.text(), testing::HasSubstr("farsum_collect: the test has no more"));
  EXPECT_EQ(words.request->own.bytes, 0u);
}

// A rank that brings little would else look for an answer where nobody leaves one.
TEST(CarriedMemory, takes_the_same_calls_for_short_on_all_ranks) {
  Mailboxes boxes;
  CarriedNode node({0, 0, 0, 0}, 0, boxes);
  for (const CallKind kind : {CallKind::barrier, CallKind::broadcast, CallKind::allgather, CallKind::allreduce}) {
    for (const std::size_t count : {1U, 127U, 128U, 129U, 513U}) {
      const WordsOfRank words(kind, count, 0);
      const bool is_short = node.members[0].memory.is_short(words.request->call);
      for (const auto& member : node.members) EXPECT_EQ(member.memory.is_short(words.request->call), is_short);
    }
  }
}

TEST(CarriedMemory, has_as_many_places_open_as_calls_are_under_way_at_most) {
  Mailboxes boxes;
  CarriedNode node({0}, 0, boxes);
  const CarriedMemory& memory = node.members[0].memory;
  for (std::uint64_t number = 0; number < 2 * CarriedMemory::places; ++number) {
    EXPECT_EQ(memory.is_open(number), number < CarriedMemory::places);
    EXPECT_FALSE(memory.has_outcome(number));
  }
  memory.place(1).calls.end(0);
  EXPECT_TRUE(memory.has_outcome(1));
  EXPECT_FALSE(memory.has_outcome(1 + CarriedMemory::places));
}

}  // namespace
}  // namespace farsum
