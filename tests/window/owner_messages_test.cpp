// What goes to the owners of a window's parts and what comes back: room, answers, failures, and who waits for what.
#include "window/owner_messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "scripted_parts.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MessagesToOwners : public testing::Test {
 protected:
  static constexpr std::uint32_t there = ScriptedParts::there, beyond = ScriptedParts::beyond;

  // No message leaves any more, and none has room to wait.
  void use_up_all_room() {
    parts.transport.room = 0;
    for (std::size_t i = 0; i < ScriptedParts::backlog; ++i)
      ASSERT_TRUE(messages.try_send(ScriptedParts::put(data, 8 * i), there, nullptr));
  }
  std::uint64_t count(std::uint32_t target = there) { return parts.outstanding(target).count.load(); }

  ScriptedParts parts;
  OwnerMessages& messages = parts.messages;
  const Bytes data = Bytes(8, std::byte{1});
};

TEST_F(MessagesToOwners, go_to_the_rank_of_the_job_and_are_outstanding_until_they_are_answered) {
  EXPECT_EQ(messages.send(ScriptedParts::put(data, 40), there, nullptr).text(), "");
  ASSERT_EQ(parts.transport.posted.size(), 1);
  EXPECT_EQ(parts.transport.posted[0].to, peer);
  EXPECT_EQ(parts.header(0).window, window);
  EXPECT_EQ(parts.header(0).offset, 40);
  messages.take_replies(there);
  EXPECT_FALSE(messages.is_through(there));
  EXPECT_TRUE(messages.is_through(beyond));
  parts.answer(0);
  messages.take_replies(beyond);
  EXPECT_FALSE(messages.is_through(there)) << "it is another owner's answer";
  messages.take_replies(there);
  EXPECT_TRUE(messages.is_through(there));
  EXPECT_EQ(parts.waiter.waits, 0);
}

// ---- room ----

TEST_F(MessagesToOwners, that_find_no_room_have_done_nothing) {
  use_up_all_room();
  EXPECT_FALSE(messages.try_send(ScriptedParts::put(data), there, nullptr));
  Outstanding fetches;
  RequestState told;
  EXPECT_FALSE(messages.try_fetch(ScriptedParts::put(data), there, fetches, told));
  EXPECT_EQ(count(), ScriptedParts::backlog);
  EXPECT_EQ(fetches.count.load(), 0);
  EXPECT_FALSE(told.done.load());
  EXPECT_TRUE(messages.try_send(ScriptedParts::put(data), beyond, nullptr)) << "the room of another owner is used up";
}

TEST_F(MessagesToOwners, wait_for_room_and_leave_in_their_order) {
  use_up_all_room();
  parts.waiter.then([] {}).then([this] { parts.transport.room = 1; });
  EXPECT_EQ(messages.send(ScriptedParts::put(data, 16), there, nullptr).text(), "");
  EXPECT_EQ(parts.waiter.waits, 1);
  EXPECT_TRUE(parts.waiter.is_through());
  parts.transport.room = 2;
  messages.take_replies(there);
  EXPECT_THAT(parts.offsets(), ElementsAre(0, 8, 16));
}

TEST_F(MessagesToOwners, with_scattered_elements_wait_for_room_too_and_are_one) {
  use_up_all_room();
  parts.waiter.then([this] { parts.transport.room = 3; });
  const std::array<std::uint64_t, 2> offsets = {48, 8}, values = {1, 2};
  EXPECT_EQ(messages
                .send_elements({.type = ops::ElementType::uint64,
                                .op = ops::Operator::sum,
                                .alpha = nullptr,
                                .offsets = offsets,
                                .packed = std::as_bytes(std::span(values))},
                               there)
                .text(),
            "");
  ASSERT_EQ(parts.transport.posted.size(), 3);
  const auto message = wire::decode(parts.transport.posted[2].bytes);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->header.kind, wire::MessageKind::scatter);
  EXPECT_EQ(message->offsets.size_bytes(), sizeof offsets);
  EXPECT_EQ(std::memcmp(message->offsets.data(), offsets.data(), sizeof offsets), 0);
  EXPECT_EQ(std::memcmp(message->operand.data(), values.data(), sizeof values), 0);
  EXPECT_EQ(count(), 3);
}

TEST_F(MessagesToOwners, are_not_sent_where_the_wait_for_room_fails) {
  use_up_all_room();
  const Status status = messages.send(ScriptedParts::put(data, 16), there, nullptr);
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_THAT(status.text(), HasSubstr("waiting for room in the target's mailbox"));
  EXPECT_EQ(count(), ScriptedParts::backlog);
}

// Locks are kept back for other reasons than the room that the engine tells of.
TEST_F(MessagesToOwners, that_may_wait_for_others_are_tried_again_until_they_leave_once) {
  parts.transport.room = 0;
  EXPECT_TRUE(parts.engine.has_room(peer));
  int tried = 0;
  parts.transport.on_post = [&tried] { ++tried; };
  parts.waiter.then([] {}).then([this] { parts.transport.room = 5; });
  RequestState answer;
  EXPECT_EQ(messages.ask(there, {.kind = wire::MessageKind::lock}, answer).text(), "");
  EXPECT_EQ(parts.transport.posted.size(), 1);
  EXPECT_EQ(tried, 4);
}

// ---- control messages ----

TEST_F(MessagesToOwners, tell_who_sends_them) {
  EXPECT_EQ(messages.tell(there, wire::MessageKind::complete).text(), "");
  EXPECT_EQ(parts.header(0).kind, wire::MessageKind::complete);
  EXPECT_EQ(parts.header(0).window, window);
  EXPECT_EQ(parts.header(0).offset, ScriptedParts::here);
  EXPECT_FALSE(messages.is_through(there)) << "a flush waits for it";
}

TEST_F(MessagesToOwners, that_ask_say_what_of_and_are_not_outstanding) {
  RequestState answer;
  answer.done.store(true);
  answer.code.store(Code::range);
  EXPECT_EQ(messages.ask(there, {wire::MessageKind::lock, LockMode::exclusive, wire::flag_at_once, 2}, answer).text(),
            "");
  EXPECT_EQ(parts.header(0).flags, wire::flag_exclusive | wire::flag_at_once);
  EXPECT_EQ(parts.header(0).slot, 2);
  EXPECT_TRUE(messages.is_through(there));
  EXPECT_FALSE(answer.done.load()) << "it is the answer to the question before";
  EXPECT_EQ(answer.code.load(), Code::ok);
  EXPECT_EQ(messages.ask(there, {.kind = wire::MessageKind::unlock}, answer).text(), "");
  EXPECT_EQ(parts.header(1).flags, 0);
}

TEST_F(MessagesToOwners, that_ask_are_answered_in_a_sentence) {
  RequestState answer;
  ASSERT_EQ(messages.ask(there, {.kind = wire::MessageKind::lock}, answer).text(), "");
  parts.waiter.then([] {}).then([this] { parts.answer(0, Code::rank); });
  const Status status = messages.await_answer(there, answer, "farsum_lock");
  EXPECT_EQ(status.code(), Code::rank);
  EXPECT_EQ(status.text(),
            "farsum_lock: window 9, rank 1: the owner's agent answered: this rank does not belong to the window there");
  EXPECT_EQ(messages.take_failure(there, "farsum_flush").text(), "") << "who asked has been told";
}

// ---- waiting ----

TEST_F(MessagesToOwners, whose_answers_come_in_are_told_to_the_waiter) {
  ASSERT_EQ(messages.send(ScriptedParts::put(data), there, nullptr).text(), "");
  messages.take_replies(there);
  EXPECT_EQ(parts.waiter.times_come, 0);
  parts.answer(0);
  messages.take_replies_of(peer);
  EXPECT_EQ(parts.waiter.times_come, 1);
}

TEST_F(MessagesToOwners, borrow_what_has_not_left_and_what_is_to_come) {
  parts.transport.room = 0;
  Bytes into(8);
  ASSERT_TRUE(messages.try_send(ScriptedParts::put(data), there, nullptr));
  ASSERT_TRUE(messages.try_send(ScriptedParts::get(into), beyond, nullptr));
  EXPECT_FALSE(messages.borrows_nothing(there));
  parts.transport.room = 2;
  messages.take_replies(there);
  messages.take_replies(beyond);
  EXPECT_TRUE(messages.borrows_nothing(there)) << "the operand has left";
  EXPECT_FALSE(messages.is_through(there));
  EXPECT_FALSE(messages.borrows_nothing(beyond)) << "the result has not come";
  parts.answer(beyond, 0, Code::ok, data);
  messages.take_replies(beyond);
  EXPECT_TRUE(messages.borrows_nothing(beyond));
  EXPECT_EQ(into, data);
}

TEST_F(MessagesToOwners, point_at_nothing_any_more_where_a_wait_fails) {
  Bytes into(8);
  RequestState told;
  ASSERT_EQ(messages.send(ScriptedParts::get(into), beyond, &told).text(), "");
  ASSERT_EQ(messages.send(ScriptedParts::put(data), there, nullptr).text(), "");
  const Status status = messages.wait(
      there, [this] { return messages.is_through(there); }, "farsum_flush");
  EXPECT_EQ(status.text(), "farsum_flush: nothing happens any more");
  EXPECT_TRUE(told.done.load()) << "of another target";
  EXPECT_EQ(told.code.load(), Code::peer_failed);
  EXPECT_TRUE(messages.borrows_nothing(beyond));
  EXPECT_TRUE(messages.is_through(there));
}

// ---- failures ----

TEST_F(MessagesToOwners, that_fail_are_told_once_of_and_of_their_target_alone) {
  ASSERT_EQ(messages.send(ScriptedParts::put(data), there, nullptr).text(), "");
  ASSERT_EQ(messages.tell(there, wire::MessageKind::post).text(), "");
  parts.answer(0, Code::range);
  parts.answer(1);
  messages.take_replies(there);
  EXPECT_EQ(messages.take_failure(beyond, "farsum_flush").text(), "");
  const Status status = messages.take_failure(there, "farsum_flush");
  EXPECT_EQ(status.code(), Code::range);
  EXPECT_EQ(status.text(),
            "farsum_flush: window 9, rank 1: an earlier operation failed: the bytes are not exposed there");
  EXPECT_EQ(messages.take_failure(there, "farsum_flush").text(), "");
}

TEST_F(MessagesToOwners, whose_failure_is_noted_keep_it_when_others_go_well) {
  messages.note_failure(there, {Code::unsupported, "a card does not"});
  messages.note_failure(there, {});
  EXPECT_EQ(messages.take_failure(there, "farsum_put").code(), Code::unsupported);
}

TEST_F(MessagesToOwners, to_a_dead_owner_name_it) {
  parts.death.dead = peer;
  messages.note_failure(there, {Code::peer_failed, ""});
  EXPECT_EQ(messages.take_failure(there, "farsum_flush").text(),
            "farsum_flush: window 9, rank 1: rank 3 of the job died");
}

}  // namespace
}  // namespace farsum
