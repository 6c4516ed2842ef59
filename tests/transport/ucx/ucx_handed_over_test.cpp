// What a thread leaves to the agent and what it keeps to itself, when the agent sleeps on replies, and in which order a
// turn of serving answers.
#include <gtest/gtest.h>

#include "transport/ucx/two_transports.hpp"

namespace farsum {
namespace {

TEST_F(UcxTransportTest, hands_over_a_link_that_is_not_open_yet) {
  const std::uint64_t value = 1;
  EXPECT_FALSE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
  EXPECT_EQ(handed_over_[origin], 1u);
  EXPECT_FALSE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
  EXPECT_EQ(handed_over_[origin], 1u);
}

TEST_F(UcxTransportTest, keeps_a_small_request_to_itself_that_has_left) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  connect(adder, sums);
  settle(adder, sums);
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
  EXPECT_EQ(handed_over_[origin], 0u);
  at(origin).hand_over();
  EXPECT_EQ(handed_over_[origin], 1u);
  rounds_until(adder, sums, [&] { return sums.count == 1; });
  settle(adder, sums);
  at(origin).hand_over();
  EXPECT_EQ(handed_over_[origin], 1u) << "though nothing is under way: there may be room by now";
}

TEST_F(UcxTransportTest, sends_small_requests_that_nobody_waits_for_together) {
  constexpr std::uint64_t count = 1'000;
  Adder adder;
  Sums sums;
  connect(adder, sums);
  settle(adder, sums);
  const NetworkCounters before = at(origin).counters(), served_before = at(target).counters();
  for (std::uint64_t value = 1; value <= count; ++value) {
    while (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8, .may_keep = true}))
      round(adder, sums);
  }
  at(origin).poll_replies(target, sums);
  rounds_until(adder, sums, [&] { return sums.count == count; });
  EXPECT_TRUE(adder.in_order && sums.right);
  EXPECT_LT(at(origin).counters().asking.frames_sent - before.asking.frames_sent, count / 10);
  EXPECT_LT(at(target).counters().serving.frames_sent - served_before.serving.frames_sent, count / 10);
}

TEST_F(UcxTransportTest, acknowledges_a_frame_of_more_requests_than_a_turn_serves_once) {
  constexpr std::uint64_t count = 150;
  Adder adder;
  Sums sums;
  connect(adder, sums);
  std::uint64_t posted = 0;
  rounds_until(adder, sums, [&] {  // until there is credit for all
    for (std::uint64_t value = posted + 1; value <= 3000; value = posted + 1) {
      if (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8})) break;
      ++posted;
    }
    return sums.count == 3000;
  });
  settle(adder, sums);
  const std::uint64_t before = at(target).counters().serving.frames_sent;
  for (std::uint64_t value = 3001; value <= 3000 + count; ++value) {
    ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8, .may_keep = true}));
  }
  at(origin).poll_replies(target, sums);
  rounds_until(adder, sums, [&] { return sums.count == 3000 + count; });
  EXPECT_LE(at(target).counters().serving.frames_sent - before, 3u);
  EXPECT_TRUE(adder.in_order && sums.right);
}

TEST_F(UcxTransportTest, sends_what_it_holds_before_a_thread_sleeps) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  settle(adder, sums);
  const std::uint64_t before = at(origin).counters().asking.frames_sent;
  const std::uint64_t first = 1, second = 2;
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(first), {}, {.reply_capacity = 8, .may_keep = true}));
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(second), {}, {.reply_capacity = 8, .may_keep = true}));
  EXPECT_EQ(at(origin).counters().asking.frames_sent - before, 0u);
  at(origin).hand_over();
  EXPECT_EQ(at(origin).counters().asking.frames_sent - before, 1u);
  rounds_until(adder, sums, [&] { return sums.count == 2; });
}

// A lock, a put behind it, and the end of the epoch.
TEST_F(UcxTransportTest, sends_what_it_holds_in_one_frame_with_what_may_not_be_held) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  settle(adder, sums);
  const std::uint64_t before = at(origin).counters().asking.frames_sent;
  for (std::uint64_t value = 1; value <= 3; ++value) {
    const PostOptions how{.reply_capacity = 8, .may_wait = value != 3, .may_keep = value != 3};
    ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, how));
    EXPECT_EQ(handed_over_[origin], 0u);
  }
  EXPECT_EQ(at(origin).counters().asking.frames_sent - before, 1u);
  rounds_until(adder, sums, [&] { return sums.count == 3; });
}

TEST_F(UcxTransportTest, hands_over_what_does_not_leave_at_once) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  settle(adder, sums);
  const Bytes message(50'000);
  while (handed_over_[origin] == 0 && at(origin).try_post(target, message, {}, {.reply_capacity = 8})) {
  }
  EXPECT_EQ(handed_over_[origin], 1u);
}

TEST_F(UcxTransportTest, is_attended_while_a_thread_polls) {
  Adder adder;
  Sums sums;
  EXPECT_FALSE(at(origin).is_unattended(Network::Threads::away));
  at(origin).open(target);
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::away));
  at(origin).poll_replies(target, sums);
  EXPECT_FALSE(at(origin).is_unattended(Network::Threads::away));
  EXPECT_LE(at(origin).next_deadline_ns(), now_ns_ + 1'000'000) << "the agent asks again soon";
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::away)) << "no thread has polled since";
  EXPECT_FALSE(at(origin).is_unattended(Network::Threads::look)) << "one is about to";
  EXPECT_LE(at(origin).next_deadline_ns(), now_ns_ + 1'000'000) << "and may not come";
  at(origin).poll_replies(target, sums);
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep)) << "one has polled, and sleeps now";
  EXPECT_GT(at(origin).next_deadline_ns(), now_ns_ + 1'000'000) << "until it is woken";
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::away));
  while (at(origin).state(target) != link::LinkState::open) {
    at(origin).tick();
    at(target).poll_requests(adder, 64);
  }
  EXPECT_FALSE(at(origin).is_unattended(Network::Threads::away)) << "all is done";
}

// Its agent sleeps on what comes, and a thread takes it all: nothing is left for the agent.
TEST_F(UcxTransportTest, tells_an_agent_that_is_woken_in_vain) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  const auto ask = [&] {
    const std::uint64_t value = sums.count + 1;
    ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
    at(target).poll_requests(adder, 64);
    while (sums.count < value) {
      at(target).poll_requests(adder, 64);
      at(origin).poll_replies(target, sums);
    }
  };
  const auto ask_until_told = [&] {
    std::uint64_t asked = 0;
    for (handed_over_[origin] = 0; handed_over_[origin] == 0 && asked < 100; ++asked) ask();
    return asked;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
    EXPECT_EQ(ask_until_told(), 8u);
    EXPECT_EQ(ask_until_told(), 100u) << "once";
  }
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
  for (int i = 0; i < 7; ++i) ask();
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep)) << "it was woken by something";
  EXPECT_EQ(ask_until_told(), 8u);
  at(origin).hand_over();
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(sums.count + 1), {}, {.reply_capacity = 8}));
  EXPECT_FALSE(at(origin).is_unattended(Network::Threads::away)) << "a thread has polled";
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::away));
  const std::uint64_t left = sums.count + 1;
  handed_over_[origin] = 0;
  while (sums.count != left) {  // the agent is asleep
    at(target).poll_requests(adder, 64);
    at(origin).poll_replies(target, sums);
  }
  EXPECT_EQ(handed_over_[origin], 1u) << "nothing is left that it could sleep for";
  EXPECT_TRUE(sums.right);
}

// The agent has taken in what threads slept for: they are still counted as asleep when it asks, and gone soon.
TEST_F(UcxTransportTest, has_the_agent_ask_again_when_something_came_for_those_who_sleep) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  settle(adder, sums);
  const std::uint64_t value = 1;
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
  EXPECT_GT(at(origin).next_deadline_ns(), now_ns_ + 1'000'000);
  while (sums.count == 0) {
    at(target).poll_requests(adder, 64);
    at(origin).tick();
    at(origin).poll_replies_unattended(target, sums);
  }
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
  EXPECT_LE(at(origin).next_deadline_ns(), now_ns_ + 1'000'000);
  pass(1'000'000);
  at(origin).poll_replies_unattended(target, sums);
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
  EXPECT_GT(at(origin).next_deadline_ns(), now_ns_ + 1'000'000) << "they sleep for something else";
}

// An origin that looks for one target while the other answers: each look takes in whatever has come.
class UcxTransportToTwo : public UcxTransportTest {
 protected:
  UcxTransportToTwo() : UcxTransportTest(3) {}

  void SetUp() override {
    UcxTransportTest::SetUp();
    if (IsSkipped()) return;
    for (const Rank rank : {target, other_target}) {
      at(origin).open(rank);
      while (at(origin).state(rank) != link::LinkState::open) {
        pass(100'000);
        at(origin).tick();
        at(rank).poll_requests(adder_, 64);
      }
    }
    settle(adder_, sums_);
  }
  // Asks the other target, whose agent calls `handler`; `look` finds its next frame.
  template <class Look>
  void take_in_a_frame_of_the_other(RequestHandler& handler, Look look) {
    const std::uint64_t before = at(origin).counters().asking.frames_received;
    while (at(origin).counters().asking.frames_received == before) {
      at(other_target).poll_requests(handler, 64);
      look();
    }
  }
  void ask_the_other() {
    const std::uint64_t value = adder_.calls + 1;
    ASSERT_TRUE(at(origin).try_post(other_target, word_bytes(value), {}, {.reply_capacity = 8}));
  }

  Adder adder_;
  Sums sums_;
};

TEST_F(UcxTransportToTwo, has_the_agent_look_at_what_a_thread_took_in_for_another_before_it_sleeps) {
  ask_the_other();
  at(origin).tick();  // the agent is awake, and has found nothing
  take_in_a_frame_of_the_other(adder_, [&] { at(origin).poll_replies(target, sums_); });
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
  EXPECT_LE(at(origin).next_deadline_ns(), now_ns_) << "nothing comes any more that would wake it";
  std::uint64_t looks = 0;
  for (std::uint64_t waited = 0; waited < 100'000'000; ++looks) {
    ASSERT_TRUE(at(origin).is_unattended(Network::Threads::sleep)) << "somebody had the mutex";
    ASSERT_GT(at(origin).next_deadline_ns(), now_ns_);
    waited = at(origin).next_deadline_ns() - now_ns_;
    EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
    EXPECT_EQ(at(origin).next_deadline_ns(), now_ns_ + waited) << "whatever woke it meanwhile";
    pass(waited);
  }
  EXPECT_LE(looks, 8u);
  EXPECT_EQ(at(origin).poll_replies_unattended(other_target, sums_), 1u);
  EXPECT_TRUE(sums_.right);
}

TEST_F(UcxTransportToTwo, wakes_the_agent_for_what_a_thread_took_in_for_another_on_its_way) {
  ask_the_other();
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
  take_in_a_frame_of_the_other(adder_, [&] { at(origin).poll_replies_unattended(target, sums_); });
  EXPECT_EQ(handed_over_[origin], 1u);
  EXPECT_EQ(at(origin).poll_replies_unattended(other_target, sums_), 1u);
}

TEST_F(UcxTransportToTwo, does_not_wake_the_agent_for_what_only_keeps_a_link_going) {
  class Later final : public RequestHandler {
   public:
    Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override {
      is_asked = true;
      return {.kind = Served::Kind::later};
    }
    bool is_asked = false;
  } later;
  ask_the_other();
  while (!later.is_asked) at(other_target).poll_requests(later, 64);
  at(origin).tick();
  for (int i = 0; i < 3; ++i) {
    pass(6'000'000'000);
    at(origin).tick();  // pings
    EXPECT_TRUE(at(origin).is_unattended(Network::Threads::sleep));
    take_in_a_frame_of_the_other(later, [&] { at(origin).poll_replies(target, sums_); });
    at(origin).poll_replies(target, sums_);
  }
  EXPECT_EQ(handed_over_[origin], 0u);
  EXPECT_EQ(sums_.count, 0u);
}

TEST_F(UcxTransportTest, says_whether_a_tick_found_anything_to_do) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  connect(adder, sums);
  settle(adder, sums);
  while (at(origin).tick()) {
  }
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
  while (adder.calls == 0) at(target).poll_requests(adder, 64);
  while (!at(origin).tick()) {
  }
  at(origin).poll_replies(target, sums);
  EXPECT_EQ(sums.count, 1u);
}

// The origin of a long stream hears of more credit before the turn in which it is served ends: replies are sent then.
TEST_F(UcxTransportTest, grants_credit_in_the_middle_of_a_long_turn) {
  class Stream final : public RequestHandler {
   public:
    Stream(const UcxTransport& self, UcxTransport& sender) : self_(self), sender_(sender) {}
    Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override {
      ++served;
      sender_.tick();  // goes on sending while it is served, or the turn would be as long as sockets hold
      hears_early = hears_early || self_.counters().serving.frames_sent != sent_before;
      return {};
    }
    std::uint64_t sent_before = 0, served = 0;
    bool hears_early = false;  // something left in the turn in which this was called

   private:
    const UcxTransport& self_;
    UcxTransport& sender_;
  };
  constexpr std::uint64_t most = 100'000;
  Adder adder;
  Sums sums;
  connect(adder, sums);
  Stream stream(at(target), at(origin));
  const Bytes message(32'768);
  for (std::uint64_t posted = 0; stream.served < most && !stream.hears_early;) {
    while (posted < most && at(origin).try_post(target, message, {}, {})) ++posted;
    for (int i = 0; i < 16; ++i) at(origin).poll_replies(target, sums);
    stream.sent_before = at(target).counters().serving.frames_sent;
    at(target).poll_requests(stream, 1024);
  }
  EXPECT_TRUE(stream.hears_early) << "in " << stream.served << " requests";
}

// The origin may wait for the one; what comes behind it in the same turn is another's, or nobody waits.
TEST_F(UcxTransportTest, answers_a_short_frame_before_it_looks_for_the_next) {
  class TwoFrames final : public RequestHandler {
   public:
    TwoFrames(const UcxTransport& self, UcxTransport& sender) : self_(self), sender_(sender) {}
    Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override {
      if (++served_ % 2 == 1) {
        EXPECT_TRUE(sender_.try_post(target, word_bytes(served_), {}, {}));
      } else if (served_in_turn_ == 1) {
        hears_early = self_.counters().serving.frames_sent != sent_before_;
      }
      ++served_in_turn_;
      return {};
    }
    void begin_turn() {
      served_in_turn_ = 0;
      sent_before_ = self_.counters().serving.frames_sent;
    }
    bool hears_early = false;

   private:
    const UcxTransport& self_;
    UcxTransport& sender_;
    std::uint64_t served_ = 0, served_in_turn_ = 0, sent_before_ = 0;
  };
  Adder adder;
  Sums sums;
  connect(adder, sums);
  TwoFrames two(at(target), at(origin));
  const std::uint64_t value = 1;
  for (std::uint64_t posted = 0; posted < 1'000 && !two.hears_early; posted += 2) {
    ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {}));
    while (sums.count < posted + 2) {
      two.begin_turn();
      at(target).poll_requests(two, 64);
      at(origin).poll_replies(target, sums);
    }
  }
  EXPECT_TRUE(two.hears_early);
}

TEST_F(UcxTransportTest, lets_requests_that_wait_take_a_part_of_its_room_only) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  const Bytes message(4'000);
  std::uint64_t waiting = 0;
  // Served by nobody, they stay.
  for (int refused = 0; refused < 100;) {
    if (at(origin).try_post(target, message, {}, {.may_wait = true})) {
      ++waiting;
    } else {
      ++refused;
    }
    at(origin).tick();
  }
  EXPECT_GT(waiting, 0u);
  EXPECT_LE(waiting, 131'072u / message.size());
}

}  // namespace
}  // namespace farsum
