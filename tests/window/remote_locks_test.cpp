// Locks of ranks of other nodes: what is asked, what may follow before the answer, and who learns of it when. The
// owner's path, which is what follows a lock.
#include "window/remote_locks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <new>
#include <thread>

#include "scripted_parts.hpp"
#include "window/owner_path.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;

// What a message counts beside its operand, and how much may follow a lock.
constexpr std::uint64_t beside_operand = 192, most_behind = 8192;

class LocksOfOthers : public testing::Test {
 protected:
  static constexpr std::uint32_t there = ScriptedParts::there, beyond = ScriptedParts::beyond;

  void ask(LockMode mode = LockMode::exclusive) { ASSERT_EQ(locks.ask(there, mode).text(), ""); }
  // Whether it went behind the lock; if not, the lock is learnt of.
  bool goes_behind(const Operation& operation) {
    bool sent = false;
    EXPECT_EQ(locks.send_behind(operation, there, nullptr, sent).text(), "");
    EXPECT_NE(sent, !locks.is_unsure(there));
    return sent;
  }
  bool bytes_go_behind(std::uint64_t bytes) {
    const Bytes operand(bytes, std::byte{1});
    return goes_behind(ScriptedParts::put(operand));
  }
  void grant_when_awaited(Code code = Code::ok) {
    parts.waiter.then([this, code] { parts.answer(0, code); });
  }

  ScriptedParts parts;
  RemoteLocks& locks = parts.locks;
  OwnerPath path{parts.messages, parts.locks};
  const Bytes data = Bytes(8, std::byte{1});
};

TEST_F(LocksOfOthers, are_asked_for_and_not_waited_for) {
  EXPECT_FALSE(locks.is_unsure(there));
  ask();
  EXPECT_THAT(parts.kinds(), ElementsAre(wire::MessageKind::lock));
  EXPECT_EQ(parts.header(0).flags, wire::flag_exclusive);
  EXPECT_TRUE(parts.transport.posted[0].options.may_wait);
  EXPECT_TRUE(parts.transport.posted[0].options.may_keep);
  EXPECT_TRUE(locks.is_unsure(there));
  EXPECT_FALSE(locks.is_unsure(beyond));
  EXPECT_TRUE(locks.has_asked());
  EXPECT_EQ(parts.waiter.waits, 0);
}

TEST_F(LocksOfOthers, are_learnt_of_once) {
  EXPECT_EQ(locks.learn(there, "farsum_get").text(), "");
  EXPECT_EQ(parts.waiter.waits, 0) << "there is none";
  ask();
  grant_when_awaited();
  EXPECT_EQ(locks.learn(there, "farsum_get").text(), "");
  EXPECT_FALSE(locks.is_unsure(there));
  EXPECT_EQ(locks.learn(there, "farsum_get").text(), "");
  EXPECT_EQ(parts.waiter.waits, 1);
}

TEST_F(LocksOfOthers, that_are_refused_are_told_of_until_the_epoch_ends) {
  ask();
  grant_when_awaited(Code::sync);
  for (int i = 0; i < 2; ++i) {
    const Status status = locks.learn(there, "farsum_put");
    EXPECT_EQ(status.code(), Code::sync);
    EXPECT_EQ(status.text(),
              "farsum_put: window 9, rank 1: the owner's agent answered: no lock can be taken or given back so there");
  }
  locks.end(there);
  EXPECT_FALSE(locks.has_asked());
  EXPECT_EQ(locks.learn(there, "farsum_put").text(), "");
}

// ---- what may follow ----

TEST_F(LocksOfOthers, are_followed_by_so_much_until_they_are_known) {
  ask();
  EXPECT_TRUE(bytes_go_behind(1000));
  EXPECT_TRUE(bytes_go_behind(most_behind - 1000 - 2 * beside_operand));
  grant_when_awaited();
  EXPECT_FALSE(bytes_go_behind(1));
  EXPECT_EQ(parts.transport.posted.size(), 3) << "sending is left to the caller";
  for (std::size_t i : {1u, 2u}) EXPECT_TRUE(parts.transport.posted[i].options.may_wait);
}

TEST_F(LocksOfOthers, are_not_followed_by_one_byte_more) {
  ask();
  grant_when_awaited();
  EXPECT_FALSE(bytes_go_behind(most_behind - beside_operand + 1));
  EXPECT_EQ(parts.transport.posted.size(), 1);
}

TEST_F(LocksOfOthers, are_followed_by_all_sides_of_an_operation_and_by_its_pieces) {
  const std::uint64_t fetched = (most_behind - beside_operand) / 2, swapped = (most_behind - beside_operand) / 3 + 1;
  Bytes bytes(most_behind), into(most_behind);
  const std::vector<ops::Piece> pieces(11, {0, 726});
  Operation fetching = ScriptedParts::put(bytes);
  fetching.kind = OperationKind::get_accumulate;
  fetching.type = ops::ElementType::byte;
  fetching.result = into.data();
  fetching.bytes = fetched;
  fetching.operand_layout = fetching.result_layout = fetching.target_layout = ops::LayoutView::contiguous(fetched);
  Operation swapping = fetching;
  swapping.kind = OperationKind::compare_and_swap;
  swapping.compare = bytes.data();
  swapping.bytes = swapped;
  Operation in_pieces = ScriptedParts::put(bytes);
  in_pieces.bytes = 11 * 726;  // with sixteen bytes a piece
  in_pieces.operand_layout = ops::LayoutView::contiguous(in_pieces.bytes);
  in_pieces.target_layout = ops::LayoutView::indexed(pieces);
  ask();
  EXPECT_TRUE(goes_behind(fetching));
  locks.end(there);
  for (const Operation& operation : {swapping, in_pieces}) {
    ScriptedParts others;
    ASSERT_EQ(others.locks.ask(there, LockMode::shared).text(), "");
    others.waiter.then([&] { others.answer(0); });
    bool sent = false;
    EXPECT_EQ(others.locks.send_behind(operation, there, nullptr, sent).text(), "");
    EXPECT_FALSE(sent);
  }
}

TEST_F(LocksOfOthers, that_are_granted_meanwhile_are_followed_by_nothing_that_would_have_to_wait) {
  ask();
  parts.answer(0);
  parts.messages.take_replies(there);
  EXPECT_TRUE(locks.is_unsure(there)) << "nobody has looked";
  EXPECT_FALSE(goes_behind(ScriptedParts::put(data)));
  EXPECT_EQ(parts.transport.posted.size(), 1);
}

TEST_F(LocksOfOthers, of_the_next_epoch_may_be_followed_by_as_much) {
  ask();
  EXPECT_TRUE(bytes_go_behind(most_behind - beside_operand));
  locks.end(there);
  ask(LockMode::shared);
  EXPECT_EQ(parts.header(2).flags, 0);
  EXPECT_TRUE(bytes_go_behind(most_behind - beside_operand));
}

// ---- where asking fails ----

TEST_F(LocksOfOthers, that_could_not_be_asked_for_are_no_locks) {
  parts.transport.room = 0;
  EXPECT_EQ(locks.ask(there, LockMode::shared).code(), Code::peer_failed);
  EXPECT_FALSE(locks.is_unsure(there));
  EXPECT_FALSE(locks.has_asked());
}

TEST_F(LocksOfOthers, for_which_there_was_no_memory_are_no_locks) {
  parts.transport.on_post = [] { throw std::bad_alloc(); };
  EXPECT_THROW((void)locks.ask(there, LockMode::shared), std::bad_alloc);
  EXPECT_FALSE(locks.is_unsure(there));
  EXPECT_FALSE(locks.has_asked());
  EXPECT_TRUE(parts.messages.is_through(there));
}

// ---- at once, in turn ----

TEST_F(LocksOfOthers, that_are_asked_for_at_once_are_pending_where_they_are_not_free) {
  EXPECT_EQ(locks.ask_at_once(there, "farsum_lock_all").text(), "");
  EXPECT_EQ(parts.header(0).flags, wire::flag_at_once);
  EXPECT_FALSE(parts.transport.posted[0].options.may_keep) << "somebody waits for it";
  EXPECT_FALSE(locks.is_unsure(there));
  EXPECT_FALSE(locks.has_asked());
  grant_when_awaited(Code::pending);
  EXPECT_EQ(locks.await_granted(there, "farsum_lock_all").code(), Code::pending);
  EXPECT_EQ(locks.ask_in_turn(there, "farsum_lock_all").text(), "");
  EXPECT_EQ(parts.header(1).flags, 0);
  parts.waiter.then([this] { parts.answer(1); });
  EXPECT_EQ(locks.await_granted(there, "farsum_lock_all").text(), "") << "it is the answer to the question before";
}

TEST_F(LocksOfOthers, that_are_asked_for_at_once_without_memory_are_told_of_and_throw_nothing) {
  parts.transport.on_post = [] { throw std::bad_alloc(); };
  const Status status = locks.ask_at_once(there, "farsum_lock_all");
  EXPECT_EQ(status.code(), Code::no_memory);
  EXPECT_EQ(status.text(), "farsum_lock_all: window 9, rank 1: there was no memory left to ask for its lock");
}

// ---- before another lock ----

TEST_F(LocksOfOthers, that_this_thread_has_asked_for_are_awaited_whatever_became_of_them) {
  ask();
  ASSERT_EQ(locks.ask(beyond, LockMode::shared).text(), "");
  parts.waiter.then([this] { parts.answer(there, 0, Code::ok); }).then([this] { parts.answer(beyond, 0, Code::sync); });
  EXPECT_EQ(locks.await_asked("farsum_lock").text(), "");
  EXPECT_TRUE(parts.waiter.is_through());
  EXPECT_FALSE(locks.has_asked());
  EXPECT_TRUE(locks.is_unsure(beyond));
  EXPECT_EQ(locks.learn(beyond, "farsum_put").code(), Code::sync) << "what comes under it is told";
}

TEST_F(LocksOfOthers, that_another_thread_has_asked_for_are_not_awaited) {
  std::thread([this] { ask(); }).join();
  EXPECT_TRUE(locks.has_asked());
  EXPECT_EQ(locks.await_asked("farsum_lock").text(), "");
  EXPECT_TRUE(locks.has_asked());
}

TEST_F(LocksOfOthers, whose_owner_has_died_name_it) {
  ask();
  parts.waiter.then([this] {
    parts.death.dead = peer;
    parts.answer(0, Code::peer_failed);
  });
  const Status status = locks.await_asked("farsum_lock_mutex");
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_EQ(status.text(), "farsum_lock_mutex: the lock that was asked for before: rank 3 of the job died");
}

TEST_F(LocksOfOthers, of_mutexes_name_the_mutex_and_have_answers_of_their_own) {
  ask();
  parts.waiter.then([this] { parts.answer(1, Code::range); });
  EXPECT_EQ(locks.ask_of_mutex(there, wire::MessageKind::unlock, 2, "farsum_mutex_unlock").code(), Code::range);
  EXPECT_EQ(parts.header(1).kind, wire::MessageKind::unlock);
  EXPECT_EQ(parts.header(1).flags, wire::flag_exclusive);
  EXPECT_EQ(parts.header(1).slot, 2);
  EXPECT_TRUE(locks.is_unsure(there));
}

// ---- the owner's path ----

TEST_F(LocksOfOthers, let_operations_leave_behind_them) {
  ask();
  EXPECT_EQ(path.run(ScriptedParts::put(data), there, Completion::implicit, nullptr).text(), "");
  ASSERT_EQ(parts.transport.posted.size(), 2);
  EXPECT_TRUE(parts.transport.posted[1].options.may_wait);
  EXPECT_TRUE(parts.transport.posted[1].options.may_keep) << "it leaves with the end of the epoch";
  EXPECT_TRUE(locks.is_unsure(there));
  EXPECT_EQ(parts.waiter.waits, 0);
}

TEST_F(LocksOfOthers, are_held_before_what_is_too_long_to_follow_them_leaves) {
  ask();
  const Bytes much(most_behind, std::byte{1});
  parts.waiter.then([this] {
    EXPECT_EQ(parts.transport.posted.size(), 1);
    parts.answer(0);
  });
  EXPECT_EQ(path.run(ScriptedParts::put(much), there, Completion::implicit, nullptr).text(), "");
  EXPECT_EQ(parts.transport.posted.size(), 2);
  EXPECT_FALSE(parts.transport.posted[1].options.may_wait);
}

TEST_F(LocksOfOthers, that_are_refused_let_nothing_leave) {
  ask();
  parts.answer(0, Code::sync);
  parts.messages.take_replies(there);
  EXPECT_EQ(path.run(ScriptedParts::put(data), there, Completion::implicit, nullptr).code(), Code::sync);
  EXPECT_EQ(parts.transport.posted.size(), 1);
  EXPECT_TRUE(parts.messages.is_through(there));
}

TEST_F(LocksOfOthers, wait_for_no_blocking_operation_longer_than_for_its_answer) {
  ask();
  parts.waiter.then([this] { parts.answer(1); });
  EXPECT_EQ(path.run(ScriptedParts::put(data), there, Completion::blocking, nullptr).text(), "");
  EXPECT_FALSE(parts.transport.posted.at(1).options.may_keep) << "somebody waits for it";
  EXPECT_TRUE(locks.is_unsure(there));
}

class OwnersPath : public testing::Test {
 protected:
  static constexpr std::uint32_t there = ScriptedParts::there;
  ScriptedParts parts;
  OwnerPath path{parts.messages, parts.locks};
  const Bytes data = Bytes(8, std::byte{1});
};

TEST_F(OwnersPath, is_complete_only_where_somebody_waits) {
  EXPECT_EQ(path.run(ScriptedParts::put(data), there, Completion::implicit, nullptr).text(), "");
  EXPECT_EQ(parts.waiter.waits, 0);
  parts.answer(0);
  Bytes into(8);
  parts.waiter.then([this] { parts.answer(1, Code::ok, data); });
  EXPECT_EQ(path.run(ScriptedParts::get(into), there, Completion::blocking, nullptr).text(), "");
  EXPECT_EQ(into, data);
  EXPECT_TRUE(parts.messages.is_through(there));
}

TEST_F(OwnersPath, tells_a_request_what_became_of_it) {
  RequestState request;
  EXPECT_EQ(path.run(ScriptedParts::put(data), there, Completion::by_request, &request).text(), "");
  EXPECT_FALSE(request.done.load());
  parts.answer(0, Code::range);
  parts.messages.take_replies(there);
  EXPECT_TRUE(request.done.load());
  EXPECT_EQ(request.code.load(), Code::range);
  EXPECT_EQ(parts.messages.take_failure(there, "farsum_flush").text(), "");
}

TEST_F(OwnersPath, tells_whoever_waits_what_the_owner_answered_and_nobody_else) {
  parts.waiter.then([this] { parts.answer(0, Code::alignment); });
  const std::uint64_t one = 1;
  EXPECT_EQ(path.run(ScriptedParts::sum(one, 4), there, Completion::blocking, nullptr).text(),
            "farsum_accumulate: window 9, rank 1: the owner's agent answered: an element is not aligned to its type");
  EXPECT_EQ(parts.messages.take_failure(there, "farsum_flush").text(), "");
}

}  // namespace
}  // namespace farsum
