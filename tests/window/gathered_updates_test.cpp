// The aggregated path: what travels together, in which order, and what becomes of it where it cannot leave.
#include "window/gathered_updates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scripted_parts.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t gathered_limit = 4;

class Gathering : public testing::Test {
 protected:
  static constexpr std::uint32_t there = ScriptedParts::there, beyond = ScriptedParts::beyond;

  struct Sent {
    ops::Operator op;
    std::vector<std::uint64_t> offsets, values;
    bool operator==(const Sent&) const = default;
  };
  Sent sent(std::size_t index) const {
    const auto message = wire::decode(parts.transport.posted.at(index).bytes);
    if (!message || message->header.kind != wire::MessageKind::scatter) {
      ADD_FAILURE() << "no scatter message";
      return {};
    }
    Sent read{message->header.op, {}, {}};
    read.offsets.resize(message->offsets.size() / sizeof(std::uint64_t));
    read.values.resize(message->operand.size() / sizeof(std::uint64_t));
    std::memcpy(read.offsets.data(), message->offsets.data(), message->offsets.size());
    std::memcpy(read.values.data(), message->operand.data(), message->operand.size());
    return read;
  }

  void add(std::uint64_t value, std::uint64_t offset, ops::Operator op = ops::Operator::sum,
           std::uint32_t target = ScriptedParts::there) {
    Operation operation = ScriptedParts::sum(value, offset);
    operation.op = op;
    EXPECT_EQ(gathered.run(operation, target).text(), "");
  }
  bool tries_to_add(std::uint64_t value, std::uint64_t offset, ops::Operator op = ops::Operator::sum,
                    ops::ElementType type = ops::ElementType::uint64) {
    return gathered.try_add(
        {.type = type, .op = op, .offset = offset, .operand = reinterpret_cast<std::byte*>(&value), .bytes = 8}, there);
  }

  ScriptedParts parts;
  GatheredUpdates gathered{parts.messages, parts.locks, 3, gathered_limit};
};

TEST_F(Gathering, sends_as_many_as_the_limit_in_one_message_in_their_order) {
  for (std::uint64_t i = 0; i < gathered_limit - 1; ++i) add(10 + i, 8 * (i ^ 1));
  EXPECT_THAT(parts.transport.posted, IsEmpty());
  add(13, 16);
  ASSERT_EQ(parts.transport.posted.size(), 1);
  EXPECT_EQ(sent(0), (Sent{ops::Operator::sum, {8, 0, 24, 16}, {10, 11, 12, 13}}));
  add(14, 0);
  EXPECT_EQ(parts.transport.posted.size(), 1) << "the next begins anew";
}

TEST_F(Gathering, leaves_the_first_and_the_last_of_a_message_to_the_long_way) {
  EXPECT_FALSE(tries_to_add(1, 0));
  add(1, 0);
  EXPECT_TRUE(tries_to_add(2, 8));
  EXPECT_TRUE(tries_to_add(3, 16));
  EXPECT_FALSE(tries_to_add(4, 24));
  EXPECT_THAT(parts.transport.posted, IsEmpty());
  add(4, 24);
  EXPECT_EQ(sent(0), (Sent{ops::Operator::sum, {0, 8, 16, 24}, {1, 2, 3, 4}}));
}

TEST_F(Gathering, leaves_updates_of_another_kind_to_the_long_way) {
  add(1, 0);
  EXPECT_FALSE(tries_to_add(2, 8, ops::Operator::max));
  EXPECT_FALSE(tries_to_add(2, 8, ops::Operator::sum, ops::ElementType::int64));
  EXPECT_EQ(gathered.send(there).text(), "");
  EXPECT_EQ(sent(0), (Sent{ops::Operator::sum, {0}, {1}}));
}

TEST_F(Gathering, sends_what_is_there_before_it_gathers_another_kind) {
  add(1, 0);
  add(2, 8, ops::Operator::max);
  ASSERT_EQ(parts.transport.posted.size(), 1);
  EXPECT_EQ(sent(0), (Sent{ops::Operator::sum, {0}, {1}}));
  add(3, 16, ops::Operator::max);
  EXPECT_EQ(gathered.send(there).text(), "");
  EXPECT_EQ(sent(1), (Sent{ops::Operator::max, {8, 16}, {2, 3}}));
}

TEST_F(Gathering, takes_another_factor_for_another_kind) {
  const std::uint64_t value = 1;
  Operation scaled = ScriptedParts::sum(value);
  scaled.op = ops::Operator::scaled_sum;
  for (const std::uint64_t factor : {3, 3, 5}) {
    scaled.alpha = &factor;
    EXPECT_EQ(gathered.run(scaled, there).text(), "");
  }
  EXPECT_EQ(gathered.send(there).text(), "");
  ASSERT_EQ(parts.transport.posted.size(), 2);
  EXPECT_EQ(sent(0).offsets.size(), 2);
  EXPECT_EQ(sent(1).offsets.size(), 1);
  EXPECT_EQ(parts.header(0).alpha[0], std::byte{3});
  EXPECT_EQ(parts.header(1).alpha[0], std::byte{5});
}

TEST_F(Gathering, copies_what_it_gathers) {
  std::uint64_t value = 7;
  EXPECT_EQ(gathered.run(ScriptedParts::sum(value), there).text(), "");
  value = 8;
  EXPECT_EQ(gathered.send(there).text(), "");
  EXPECT_THAT(sent(0).values, ElementsAre(7));
}

TEST_F(Gathering, counts_the_pieces_place_to_where_the_element_goes) {
  const std::vector<ops::Piece> pieces{{-16, 8}};
  const std::uint64_t value = 7;
  Operation operation = ScriptedParts::sum(value, 64);
  operation.target_layout = ops::LayoutView::indexed(pieces);
  EXPECT_EQ(gathered.run(operation, there).text(), "");
  EXPECT_EQ(gathered.send(there).text(), "");
  EXPECT_THAT(sent(0).offsets, ElementsAre(48));
}

TEST_F(Gathering, keeps_targets_apart) {
  add(1, 0);
  add(2, 8, ops::Operator::max, beyond);
  EXPECT_THAT(parts.transport.posted, IsEmpty());
  EXPECT_EQ(gathered.send(beyond).text(), "");
  ASSERT_EQ(parts.transport.posted.size(), 1);
  EXPECT_EQ(parts.transport.posted[0].to, parts.ranks[beyond]);
  EXPECT_EQ(gathered.send(beyond).text(), "");
  EXPECT_EQ(parts.transport.posted.size(), 1) << "it was sent twice";
}

TEST_F(Gathering, sends_nothing_under_a_lock_that_is_not_held) {
  ASSERT_EQ(parts.locks.ask(there, LockMode::shared).text(), "");
  add(1, 0);
  parts.waiter.then([this] {
    EXPECT_THAT(parts.kinds(), ElementsAre(wire::MessageKind::lock));
    parts.answer(0);
  });
  EXPECT_EQ(gathered.send(there).text(), "");
  EXPECT_EQ(parts.waiter.waits, 1);
  EXPECT_EQ(sent(1), (Sent{ops::Operator::sum, {0}, {1}}));
}

TEST_F(Gathering, tells_of_a_refused_lock_and_sends_nothing_under_it) {
  ASSERT_EQ(parts.locks.ask(there, LockMode::shared).text(), "");
  add(1, 0);
  parts.waiter.then([this] { parts.answer(0, Code::sync); });
  const Status status = gathered.send(there);
  EXPECT_EQ(status.code(), Code::sync);
  EXPECT_THAT(status.text(), testing::HasSubstr("farsum_accumulate: window 9, rank 1"));
  EXPECT_EQ(parts.transport.posted.size(), 1);
}

TEST_F(Gathering, keeps_what_found_no_room_and_tells_why) {
  add(1, 0);
  parts.transport.room = 0;
  const Bytes data(8);
  for (std::size_t i = 0; i < ScriptedParts::backlog; ++i)
    ASSERT_TRUE(parts.messages.try_send(ScriptedParts::put(data), there, nullptr));
  EXPECT_EQ(gathered.send(there).code(), Code::peer_failed);
  parts.transport.room = 3;
  parts.messages.take_replies(there);
  EXPECT_EQ(gathered.send(there).text(), "");
  EXPECT_EQ(sent(2), (Sent{ops::Operator::sum, {0}, {1}}));
}

}  // namespace
}  // namespace farsum
