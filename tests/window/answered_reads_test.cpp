// Reads that copies answer: which may be, what is fetched behind others, what spoils the copies, who waits for fetches.
#include "window/answered_reads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scripted_parts.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t read_block = ReadAhead::block_bytes;

class ReadsFromCopies : public testing::Test {
 protected:
  static constexpr std::uint32_t there = ScriptedParts::there, beyond = ScriptedParts::beyond;

  // Nothing under way points into the copies when they go.
  ~ReadsFromCopies() override { parts.messages.fail_all(); }

  Operation get(std::uint64_t offset = 0) {
    into.assign(8, std::byte{0});
    return ScriptedParts::get(into, offset);
  }
  static bool is_block(const wire::MessageHeader& header) {
    return header.operation == OperationKind::get && header.bytes == read_block;
  }
  // A read that somebody waits for in each of two rounds has its block fetched, here with these bytes.
  void fetch_block(std::uint64_t index, std::byte filling) {
    for (int i = 0; i < 2; ++i) reads.note_sent(get(index * read_block), there, Completion::blocking);
    ASSERT_TRUE(is_block(parts.header(parts.transport.posted.size() - 1)));
    parts.answer(parts.transport.posted.size() - 1, Code::ok, Bytes(read_block, filling));
    parts.messages.take_replies(there);
  }

  ScriptedParts parts;
  Hearing hearing;
  ReadCopies copies;
  Bytes into;
  AnsweredReads reads{
      {.age_ns = 1000, .hearing = &hearing, .copies = &copies, .now_ns = [] { return std::uint64_t{5}; }},
      {0, 4 * read_block, 4 * read_block},
      {there, beyond},
      parts.messages,
      parts.locks};
};

TEST_F(ReadsFromCopies, may_be_what_only_reads_but_for_atomic_ones_that_are_awaited) {
  Operation atomic = get();
  atomic.kind = OperationKind::get_accumulate;
  atomic.type = ops::ElementType::uint64;
  atomic.op = ops::Operator::no_op;
  for (const Completion completion : {Completion::implicit, Completion::blocking, Completion::by_request}) {
    EXPECT_TRUE(reads.may_answer(get(), there, completion));
    EXPECT_EQ(reads.may_answer(atomic, there, completion), completion != Completion::blocking);
  }
  const Bytes data(8);
  EXPECT_FALSE(reads.may_answer(ScriptedParts::put(data), there, Completion::implicit));
}

// The lock may be granted after what others do under theirs.
TEST_F(ReadsFromCopies, are_none_under_a_lock_that_was_only_asked_for) {
  ASSERT_EQ(parts.locks.ask(there, LockMode::shared).text(), "");
  EXPECT_FALSE(reads.may_answer(get(), there, Completion::implicit));
  EXPECT_TRUE(reads.may_answer(get(), beyond, Completion::implicit));
  parts.locks.end(there);
  EXPECT_TRUE(reads.may_answer(get(), there, Completion::implicit));
}

TEST_F(ReadsFromCopies, answer_once_a_block_was_fetched_behind_the_second_round) {
  EXPECT_FALSE(reads.answer(get(16), there));
  for (int i = 0; i < 2; ++i) {
    reads.note_sent(get(16), there, Completion::implicit);
    EXPECT_TRUE(parts.transport.posted.empty()) << "nobody waits yet";
    EXPECT_EQ(reads.end_round(there), i);
  }
  ASSERT_EQ(parts.transport.posted.size(), 1);
  EXPECT_EQ(parts.transport.posted[0].to, peer);
  EXPECT_TRUE(is_block(parts.header(0)));
  EXPECT_TRUE(parts.messages.is_through(there)) << "no flush waits for it";
  EXPECT_FALSE(reads.answer(get(16), there));
  parts.waiter.then([this] { parts.answer(0, Code::ok, Bytes(read_block, std::byte{7})); });
  EXPECT_EQ(reads.await_fetches(there, "farsum_flush").text(), "");
  EXPECT_TRUE(reads.answer(get(16), there));
  EXPECT_EQ(into, Bytes(8, std::byte{7}));
}

TEST_F(ReadsFromCopies, end_a_round_where_somebody_waits_for_one) {
  for (const Completion completion : {Completion::blocking, Completion::by_request})
    reads.note_sent(get(), there, completion);
  EXPECT_EQ(parts.transport.posted.size(), 1);
}

TEST_F(ReadsFromCopies, that_found_no_room_for_their_block_fetch_nothing) {
  parts.transport.room = 0;
  const Bytes data(8);
  for (std::size_t i = 0; i < ScriptedParts::backlog; ++i)
    ASSERT_TRUE(parts.messages.try_send(ScriptedParts::put(data), there, nullptr));
  for (int i = 0; i < 2; ++i) reads.note_sent(get(), there, Completion::blocking);
  EXPECT_EQ(reads.await_fetches(there, "farsum_get").text(), "");
  EXPECT_EQ(parts.waiter.waits, 0);
}

// ---- what spoils copies ----

TEST_F(ReadsFromCopies, are_spoilt_by_all_that_lies_between_the_ends_of_another_operation) {
  for (std::uint64_t block = 0; block < 4; ++block) fetch_block(block, std::byte{1});
  // From the last bytes of the first block to the first ones of the third.
  const std::vector<ops::Piece> pieces{{read_block, 8}, {-16, 8}};
  const Bytes data(16);
  Operation put = ScriptedParts::put(data, read_block + 8);
  put.target_layout = ops::LayoutView::indexed(pieces);
  reads.note_other(put, there);
  for (std::uint64_t block = 0; block < 4; ++block)
    EXPECT_EQ(reads.answer(get(block * read_block), there), block == 3) << block;
}

TEST_F(ReadsFromCopies, are_spoilt_by_changes_of_their_bytes_alone) {
  fetch_block(0, std::byte{1});
  fetch_block(1, std::byte{2});
  reads.note_change(beyond, 0, 8);
  reads.note_change(there, read_block - 8, read_block);
  EXPECT_FALSE(reads.answer(get(0), there));
  EXPECT_TRUE(reads.answer(get(read_block), there));
}

// ---- who waits ----

TEST_F(ReadsFromCopies, are_waited_for_at_their_target_alone) {
  EXPECT_EQ(reads.await_fetches(there, "farsum_flush").text(), "");
  for (int i = 0; i < 2; ++i) reads.note_sent(get(), there, Completion::blocking);
  EXPECT_EQ(reads.await_fetches(beyond, "farsum_flush").text(), "");
  EXPECT_EQ(parts.waiter.waits, 0);
}

TEST_F(ReadsFromCopies, are_all_waited_for_at_the_end) {
  for (const std::uint32_t target : {there, beyond}) {
    for (int i = 0; i < 2; ++i) reads.note_sent(get(), target, Completion::blocking);
  }
  ASSERT_EQ(parts.transport.posted.size(), 2);
  parts.waiter.then([this] { parts.answer(there, 0, Code::ok, Bytes(read_block)); }).then([this] {
    parts.answer(beyond, 0, Code::range);
  });
  EXPECT_EQ(reads.await_all_fetches("farsum_window_free").text(), "") << "that one was refused spoils nothing";
  EXPECT_TRUE(parts.waiter.is_through());
}

TEST_F(ReadsFromCopies, point_into_the_copies_no_more_where_the_wait_for_them_fails) {
  for (const std::uint32_t target : {there, beyond}) {
    for (int i = 0; i < 2; ++i) reads.note_sent(get(), target, Completion::blocking);
  }
  const Status status = reads.await_all_fetches("farsum_window_free");
  EXPECT_EQ(status.text(), "farsum_window_free: nothing happens any more");
  EXPECT_EQ(reads.await_fetches(there, "again").text(), "");
  EXPECT_EQ(reads.await_fetches(beyond, "again").text(), "");
}

}  // namespace
}  // namespace farsum
