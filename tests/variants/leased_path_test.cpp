// Caller-computes at a target of another node as a window asks for it: what the lock, the sides and the answers of an
// operation become. What a lease is and does is in tests/sim/lease_test.cpp.
#include "variants/leases/leased_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "executor_parts.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LeasedOperations : public testing::Test {
 protected:
  static constexpr std::uint32_t there = ScriptedParts::there;
  using Three = std::array<std::uint64_t, 3>;

  Operation sum() const {
    Operation operation = ScriptedParts::sum(addends[0], 8);
    operation.bytes = sizeof addends;
    operation.operand_layout = operation.target_layout = ops::LayoutView::contiguous(sizeof addends);
    return operation;
  }
  Status run(const Operation& operation) {
    return path.run({.operation = operation, .target = there, .completion = Completion::implicit});
  }
  // The owner grants a lease on this.
  void grant_when_awaited(std::uint64_t number, const Three& contents) {
    parts.waiter.then([this, number, contents] {
      EXPECT_FALSE(parts.messages.is_through(there)) << "another thread's flush would not find it";
      Bytes reply(8 + sizeof contents);
      reply[0] = std::byte{77};  // the lease's name
      std::memcpy(reply.data() + 8, contents.data(), sizeof contents);
      parts.answer(number, Code::ok, std::move(reply));
    });
  }
  // The owner has put back everything.
  void accept_when_awaited(std::uint64_t number) {
    parts.waiter.then([this, number] { parts.answer(number); });
  }
  Three put_back(std::size_t index) const {
    Three values{};
    const Bytes& message = parts.transport.posted.at(index).bytes;
    EXPECT_EQ(message.size(), sizeof(wire::MessageHeader) + sizeof values);
    std::memcpy(values.data(), message.data() + sizeof(wire::MessageHeader), sizeof values);
    return values;
  }

  ExecutorParts parts;
  LeasedPath path{parts.engine, parts.transport, parts.services()};
  const Three addends = {1, 2, 3};
};

TEST_F(LeasedOperations, are_complete_on_return_whoever_waits) {
  grant_when_awaited(0, {10, 20, 30});
  accept_when_awaited(1);
  EXPECT_EQ(run(sum()).text(), "");
  EXPECT_THAT(parts.kinds(), ElementsAre(wire::MessageKind::lease, wire::MessageKind::lease_put));
  EXPECT_EQ(parts.header(0).window, window);
  EXPECT_EQ(parts.header(0).offset, 8);
  EXPECT_EQ(parts.header(1).offset, 77);
  EXPECT_THAT(put_back(1), ElementsAre(11, 22, 33));
  EXPECT_TRUE(parts.messages.is_through(there));
  EXPECT_EQ(parts.operations_by(Path::owner), 0) << "the owner computed nothing";
}

TEST_F(LeasedOperations, take_and_give_pieces_of_the_programs_buffers) {
  const std::array<std::uint64_t, 5> from = {1, 9, 2, 9, 3};
  std::array<std::uint64_t, 5> into = {5, 5, 5, 5, 5};
  const std::vector<ops::Piece> every_second{{0, 8}, {16, 8}, {32, 8}};
  const std::vector<ops::Piece> reversed{{32, 8}, {16, 8}, {0, 8}};
  Operation operation = sum();
  operation.kind = OperationKind::get_accumulate;
  operation.operand = reinterpret_cast<const std::byte*>(from.data());
  operation.operand_layout = ops::LayoutView::indexed(every_second);
  operation.result = reinterpret_cast<std::byte*>(into.data());
  operation.result_layout = ops::LayoutView::indexed(reversed);
  grant_when_awaited(0, {10, 20, 30});
  accept_when_awaited(1);
  EXPECT_EQ(run(operation).text(), "");
  EXPECT_THAT(put_back(1), ElementsAre(11, 22, 33));
  EXPECT_THAT(into, ElementsAre(30, 5, 20, 5, 10));
}

TEST_F(LeasedOperations, hold_their_epochs_lock_first) {
  ASSERT_EQ(parts.locks.ask(there, LockMode::exclusive).text(), "");
  parts.waiter.then([this] {
    EXPECT_THAT(parts.kinds(), ElementsAre(wire::MessageKind::lock));
    parts.answer(0);
  });
  grant_when_awaited(1, {0, 0, 0});
  accept_when_awaited(2);
  EXPECT_EQ(run(sum()).text(), "");
}

TEST_F(LeasedOperations, ask_for_nothing_under_a_lock_that_was_refused) {
  ASSERT_EQ(parts.locks.ask(there, LockMode::exclusive).text(), "");
  parts.waiter.then([this] { parts.answer(0, Code::sync); });
  const Status status = run(sum());
  EXPECT_EQ(status.code(), Code::sync);
  EXPECT_THAT(status.text(), HasSubstr("farsum_accumulate: window 9, rank 1"));
  EXPECT_EQ(parts.transport.posted.size(), 1);
}

TEST_F(LeasedOperations, count_what_they_left_to_the_owner) {
  parts.waiter.then([this] { parts.answer(0, Code::pending); });  // there is no room for a lease
  accept_when_awaited(1);
  EXPECT_EQ(run(sum()).text(), "");
  EXPECT_THAT(parts.kinds(), ElementsAre(wire::MessageKind::lease, wire::MessageKind::operate));
  EXPECT_EQ(parts.operations_by(Path::owner), 1);
  EXPECT_EQ(parts.bytes_by(Path::owner), sizeof addends);
}

TEST_F(LeasedOperations, tell_what_the_owner_answered_and_give_no_result) {
  Three into = {5, 5, 5};
  const std::vector<ops::Piece> pieces{{0, 8}, {8, 8}, {16, 8}};
  Operation operation = sum();
  operation.kind = OperationKind::get_accumulate;
  operation.result = reinterpret_cast<std::byte*>(into.data());
  operation.result_layout = ops::LayoutView::indexed(pieces);
  parts.waiter.then([this] { parts.answer(0, Code::range); });
  const Status status = run(operation);
  EXPECT_EQ(status.text(),
            "farsum_get_accumulate: window 9, rank 1: the owner's agent answered: the bytes are not exposed there");
  EXPECT_THAT(into, ElementsAre(5, 5, 5));
  EXPECT_EQ(parts.messages.take_failure(there, "farsum_flush").text(), "") << "it has been told";
}

TEST_F(LeasedOperations, wait_for_room) {
  parts.transport.room = 0;
  const Bytes data(8);
  for (std::size_t i = 0; i < ScriptedParts::backlog; ++i)
    ASSERT_TRUE(parts.messages.try_send(ScriptedParts::put(data), there, nullptr));
  parts.waiter.then([this] { parts.transport.room = 10; });
  grant_when_awaited(2, {0, 0, 0});
  accept_when_awaited(3);
  EXPECT_EQ(run(sum()).text(), "");
  EXPECT_EQ(parts.header(2).kind, wire::MessageKind::lease);
}

TEST_F(LeasedOperations, point_at_nothing_any_more_where_the_wait_fails) {
  EXPECT_EQ(run(sum()).text(), "farsum_accumulate: nothing happens any more");
  EXPECT_TRUE(parts.messages.is_through(there));
}

}  // namespace
}  // namespace farsum
