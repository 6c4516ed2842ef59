// When operations are complete: what is sent, settled and waited for, in which order, and what of it is told.
#include "window/completions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scripted_parts.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;

// Notes what it is asked for, and how much had left by then.
class NotingExecutor final : public Executor {
 public:
  explicit NotingExecutor(const Scripted& transport) : transport_(transport) {}
  Status run(const ExecutorCall&) override { return {}; }
  void settle(std::uint32_t target, const char*) override { note("settle " + std::to_string(target)); }
  void settle_all(const char*) override { note("settle all"); }
  Status await_buffers(std::uint32_t target, const char* call) override {
    note("buffers " + std::to_string(target));
    return fails ? Status(Code::peer_failed, call) : Status();
  }

  std::vector<std::string> noted;
  bool fails = false;

 private:
  void note(std::string what) { noted.push_back(what + " behind " + std::to_string(transport_.posted.size())); }
  const Scripted& transport_;
};

class Complete : public testing::Test {
 protected:
  static constexpr std::uint32_t here = ScriptedParts::here, there = ScriptedParts::there,
                                 beyond = ScriptedParts::beyond;

  // Of a window as the test wants it.
  Completions& completions() {
    if (!made_) made_ = std::make_unique<Completions>(needs);
    return *made_;
  }

  void put(std::uint32_t target) {
    ASSERT_EQ(parts.messages.send(ScriptedParts::put(data_), target, nullptr).text(), "");
  }
  void gather(std::uint32_t target) { ASSERT_EQ(gathered.run(ScriptedParts::sum(one_, 8), target).text(), ""); }
  // At the owner of that target, what has left is answered when somebody waits.
  void answer_when_awaited(std::uint32_t target, std::uint64_t number, Code code = Code::ok) {
    parts.waiter.then([=, this] { parts.answer(target, number, code); });
  }
  std::vector<Rank> receivers() const {
    std::vector<Rank> all;
    for (const Scripted::Posted& posted : parts.transport.posted) all.push_back(posted.to);
    return all;
  }

  ScriptedParts parts;
  OrderMarks order{parts.states.data(), 3};
  GatheredUpdates gathered{parts.messages, parts.locks, 3, 100};
  NotingExecutor cards{parts.transport};
  alignas(2 * cache_line_bytes) std::array<std::byte, 256> part_here{};
  std::array<RankWindow, 3> shared = {RankWindow(part_here.data(), {}), RankWindow(), RankWindow()};
  Completions::Needs needs{.size = 3,
                           .shared = shared,
                           .messages = parts.messages,
                           .locks = parts.locks,
                           .order = order,
                           .gathered = &gathered};

 private:
  const Bytes data_ = Bytes(8, std::byte{1});
  const std::uint64_t one_ = 1;
  std::unique_ptr<Completions> made_;
};

// ---- flush ----

TEST_F(Complete, is_a_flush_when_what_was_gathered_is_sent_and_all_is_answered) {
  put(there);
  gather(there);
  gather(beyond);
  answer_when_awaited(there, 0);
  parts.waiter.then([this] {
    EXPECT_THAT(parts.kinds(), ElementsAre(wire::MessageKind::operate, wire::MessageKind::scatter));
    parts.answer(1);
  });
  EXPECT_EQ(completions().flush(there, "farsum_flush").text(), "");
  EXPECT_TRUE(parts.messages.is_through(there));
  EXPECT_EQ(receivers(), (std::vector<Rank>{peer, peer})) << "another target's was sent, too";
}

TEST_F(Complete, is_a_flush_at_once_where_nothing_is_under_way) {
  EXPECT_EQ(completions().flush(there, "farsum_flush").text(), "");
  EXPECT_EQ(completions().flush_all("farsum_flush_all").text(), "");
  EXPECT_EQ(parts.waiter.waits, 0);
}

TEST_F(Complete, tells_of_a_failure_once) {
  put(there);
  answer_when_awaited(there, 0, Code::range);
  const Status status = completions().flush(there, "farsum_flush");
  EXPECT_EQ(status.code(), Code::range);
  EXPECT_EQ(status.text(),
            "farsum_flush: window 9, rank 1: an earlier operation failed: the bytes are not exposed there");
  EXPECT_EQ(completions().flush(there, "farsum_flush").text(), "");
}

TEST_F(Complete, sends_to_all_before_it_waits_for_one_and_waits_for_all_though_one_failed) {
  gather(there);
  gather(beyond);
  parts.waiter.then([this] {
    EXPECT_EQ(receivers(), (std::vector<Rank>{peer, parts.ranks[beyond]}));
    parts.answer(0, Code::range);
  });
  answer_when_awaited(beyond, 0, Code::alignment);
  EXPECT_EQ(completions().flush_all("farsum_flush_all").code(), Code::range) << "the first is told";
  EXPECT_TRUE(parts.messages.is_through(beyond));
  EXPECT_EQ(completions().flush_all("farsum_flush_all").text(), "");
}

TEST_F(Complete, has_no_order_to_keep_behind_a_flush) {
  order.mark_all();
  EXPECT_EQ(completions().flush(there, "farsum_flush").text(), "");
  EXPECT_FALSE(order.is_marked(there));
  EXPECT_TRUE(order.is_marked(beyond));
  EXPECT_EQ(completions().flush_all("farsum_flush_all").text(), "");
  EXPECT_FALSE(order.is_marked(beyond));
}

TEST_F(Complete, settles_cards_behind_what_was_gathered_and_tells_what_failed_there) {
  needs.cards = &cards;
  gather(there);
  answer_when_awaited(there, 0);
  parts.messages.note_failure(there, {Code::unsupported, ""});
  EXPECT_EQ(completions().flush(there, "farsum_flush").code(), Code::unsupported);
  EXPECT_THAT(cards.noted, ElementsAre("settle 1 behind 1"));
}

TEST_F(Complete, settles_the_cards_of_all_before_it_waits_for_one) {
  needs.cards = &cards;
  gather(there);
  answer_when_awaited(there, 0);
  EXPECT_EQ(completions().flush_all("farsum_flush_all").text(), "");
  EXPECT_EQ(cards.noted.at(0), "settle all behind 1");
}

// ---- buffers ----

TEST_F(Complete, gives_buffers_back_at_other_nodes_when_all_has_left) {
  gather(there);
  parts.transport.room = 0;
  put(there);
  parts.waiter.then([this] { parts.transport.room = 9; });
  EXPECT_EQ(completions().await_buffers(there, "farsum_flush_local").text(), "");
  EXPECT_EQ(parts.transport.posted.size(), 1) << "what was gathered is a copy";
  EXPECT_FALSE(parts.messages.is_through(there));
  EXPECT_EQ(completions().await_buffers(there, "farsum_flush_local").text(), "");
  EXPECT_EQ(parts.waiter.waits, 1);
}

// A later operation may take another path, and overtake it.
TEST_F(Complete, gives_buffers_back_at_this_node_when_all_is_done) {
  put(here);
  gather(here);
  answer_when_awaited(here, 0);
  answer_when_awaited(here, 1);
  EXPECT_EQ(completions().await_buffers(here, "farsum_flush_local").text(), "");
  EXPECT_TRUE(parts.messages.is_through(here));
  EXPECT_EQ(parts.transport.posted.size(), 2);
}

TEST_F(Complete, gives_buffers_back_when_cards_have_done_with_them) {
  needs.cards = &cards;
  EXPECT_EQ(completions().await_buffers(there, "farsum_flush_local").text(), "");
  EXPECT_EQ(completions().await_buffers(here, "farsum_flush_local").text(), "");
  EXPECT_THAT(cards.noted, ElementsAre("buffers 1 behind 0", "settle 0 behind 0"));
  cards.fails = true;
  EXPECT_EQ(completions().await_buffers(there, "farsum_flush_local").code(), Code::peer_failed);
}

TEST_F(Complete, tells_a_failure_to_whoever_wants_buffers_back_too) {
  put(there);
  parts.answer(0, Code::range);
  parts.messages.take_replies(there);
  EXPECT_EQ(completions().await_buffers(there, "farsum_flush_local").code(), Code::range);
}

// ---- the order of atomics ----

class InOrder : public Complete {
 protected:
  InOrder() {
    put(there);
    put(here);
    get_.kind = OperationKind::get;
  }
  // Whether it waits for the put that is under way to its target.
  bool waits(const Operation& operation, Path path, std::uint32_t target = ScriptedParts::here) {
    const bool was_through = parts.messages.is_through(target);
    if (!was_through && target == here) answer_when_awaited(here, 0);
    const int before = parts.waiter.waits;
    EXPECT_EQ(completions().settle_before(operation, target, path).text(), "");
    const bool has_waited = parts.waiter.waits != before;
    EXPECT_TRUE(!has_waited || parts.messages.is_through(target));
    return has_waited;
  }

  const std::uint64_t two_ = 2;
  const Operation sum_ = ScriptedParts::sum(two_);
  Operation get_ = ScriptedParts::sum(two_);
};

TEST_F(InOrder, waits_where_an_atomic_leaves_the_way_of_messages_and_once) {
  EXPECT_TRUE(waits(sum_, Path::direct));
  EXPECT_FALSE(waits(sum_, Path::direct)) << "nothing is under way";
}

TEST_F(InOrder, does_not_wait_behind_what_goes_the_same_way) {
  order.mark_all();
  EXPECT_FALSE(waits(sum_, Path::owner));
  EXPECT_FALSE(waits(sum_, Path::owner, there));
  EXPECT_FALSE(waits(get_, Path::caller, there)) << "between nodes it is moved by messages";
}

TEST_F(InOrder, does_not_wait_with_what_is_only_moved) { EXPECT_FALSE(waits(get_, Path::direct)); }

TEST_F(InOrder, waits_with_everything_behind_farsum_order) {
  order.mark_all();
  EXPECT_TRUE(waits(get_, Path::attach));
  EXPECT_TRUE(order.is_marked(here)) << "only a flush clears it";
}

TEST_F(InOrder, does_not_wait_where_the_window_needs_no_order_unless_it_was_asked_for) {
  needs.keeps_order = false;
  EXPECT_FALSE(waits(sum_, Path::direct));
  order.mark_all();
  EXPECT_TRUE(waits(sum_, Path::direct));
}

TEST_F(InOrder, sends_what_was_gathered_before_whatever_is_not) {
  gather(there);
  EXPECT_EQ(parts.transport.posted.size(), 2);
  EXPECT_FALSE(waits(sum_, Path::aggregated, there));
  EXPECT_EQ(parts.transport.posted.size(), 2);
  EXPECT_FALSE(waits(sum_, Path::owner, there));
  EXPECT_EQ(parts.header(2).kind, wire::MessageKind::scatter);
}

// ---- the end of an epoch ----

TEST_F(Complete, ends_an_epoch_behind_all_that_was_issued) {
  needs.cards = &cards;
  gather(there);
  order.mark_all();
  EXPECT_EQ(completions().ask_to_end(there, wire::MessageKind::unlock, LockMode::exclusive).text(), "");
  EXPECT_THAT(cards.noted, ElementsAre("settle 1 behind 0"));
  EXPECT_THAT(parts.kinds(), ElementsAre(wire::MessageKind::scatter, wire::MessageKind::unlock));
  EXPECT_EQ(parts.header(1).flags, wire::flag_exclusive);
  EXPECT_EQ(parts.waiter.waits, 0);
  answer_when_awaited(there, 0);
  answer_when_awaited(there, 1);
  EXPECT_EQ(completions().await_end(there, "farsum_unlock").text(), "");
  EXPECT_TRUE(parts.waiter.is_through());
  EXPECT_FALSE(order.is_marked(there));
  EXPECT_TRUE(order.is_marked(beyond));
}

TEST_F(Complete, ends_an_epoch_whatever_became_of_it_and_tells_the_first_that_failed) {
  std::uint64_t number = 0;
  const auto told = [&](Code lock, Code operation, Code end) {
    EXPECT_EQ(parts.locks.ask(there, LockMode::shared).text(), "");
    put(there);
    EXPECT_EQ(completions().ask_to_end(there, wire::MessageKind::unlock, LockMode::shared).text(), "");
    for (const Code code : {lock, operation, end}) answer_when_awaited(there, number++, code);
    const Status status = completions().await_end(there, "farsum_unlock");
    EXPECT_TRUE(parts.waiter.is_through()) << "something is under way";
    EXPECT_EQ(parts.messages.take_failure(there, "farsum_flush").text(), "") << "it is told again";
    parts.locks.end(there);
    return status.code();
  };
  EXPECT_EQ(told(Code::sync, Code::range, Code::rank), Code::sync);
  EXPECT_EQ(told(Code::ok, Code::range, Code::rank), Code::range);
  EXPECT_EQ(told(Code::ok, Code::ok, Code::rank), Code::rank);
  EXPECT_EQ(told(Code::ok, Code::ok, Code::ok), Code::ok);
}

// ---- copies ----

class WithCopies : public Complete {
 protected:
  WithCopies() { needs.reads = &reads; }
  ~WithCopies() override { parts.messages.fail_all(); }
  // The next end of a round at `there` fetches its block.
  void want_a_block() {
    const Operation get = ScriptedParts::get(into);
    reads.note_sent(get, there, Completion::blocking);
    reads.note_sent(get, there, Completion::implicit);
  }

  Hearing hearing;
  ReadCopies copies;
  Bytes into = Bytes(8);
  AnsweredReads reads{
      {.age_ns = 1000, .hearing = &hearing, .copies = &copies, .now_ns = [] { return std::uint64_t{5}; }},
      {0, ReadAhead::block_bytes, ReadAhead::block_bytes},
      {there, beyond},
      parts.messages,
      parts.locks};
};

TEST_F(WithCopies, fetches_what_is_read_often_behind_what_it_waits_for_and_has_it_then) {
  put(there);
  want_a_block();
  EXPECT_EQ(parts.transport.posted.size(), 1);
  answer_when_awaited(there, 0);
  parts.waiter.then([this] { parts.answer(there, 1, Code::ok, Bytes(ReadAhead::block_bytes, std::byte{4})); });
  EXPECT_EQ(completions().flush(there, "farsum_flush").text(), "");
  EXPECT_TRUE(parts.waiter.is_through());
  EXPECT_TRUE(reads.answer(ScriptedParts::get(into), there));
  EXPECT_EQ(into, Bytes(8, std::byte{4}));
}

TEST_F(WithCopies, fetches_nothing_where_nobody_waits) {
  want_a_block();
  EXPECT_EQ(completions().flush(there, "farsum_flush").text(), "");
  EXPECT_TRUE(parts.transport.posted.empty());
}

TEST_F(WithCopies, waits_for_all_fetches_at_the_end) {
  want_a_block();
  EXPECT_EQ(reads.end_round(there), 1);
  EXPECT_EQ(completions().await_all_fetches("farsum_window_free").code(), Code::peer_failed);
  needs.reads = nullptr;
  Completions without(needs);
  EXPECT_EQ(without.await_all_fetches("farsum_window_free").text(), "");
}

}  // namespace
}  // namespace farsum
