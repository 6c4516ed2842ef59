// What the transport between hosts promises beyond the contract: over broken connections, to sleeping agents, against
// strangers.
#include "transport/ucx/ucx_transport.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/ucx/broken_connections.hpp"
#include "transport/ucx/two_workers.hpp"

namespace farsum {
namespace {

const UcxOptions over_tcp{.transports = "tcp", .devices = "all"};

std::span<const std::byte> bytes_of(const std::uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }

link::Secret secret(unsigned seed) {
  link::Secret made{};
  for (std::byte& byte : made.bytes) byte = static_cast<std::byte>(seed++);
  return made;
}

// Adds up what comes, and answers with what it had before.
class Adder final : public RequestHandler {
 public:
  Served on_request(Rank, std::span<const std::byte> message, std::span<std::byte> reply_room, ReplyToken) override {
    std::uint64_t value = 0;
    std::memcpy(&value, message.data(), sizeof value);
    std::memcpy(reply_room.data(), &sum, sizeof sum);
    in_order = in_order && value == ++calls;
    sum += value;
    return {.reply_bytes = sizeof sum};
  }
  std::uint64_t sum = 0, calls = 0;
  bool in_order = true;
};

class Sums final : public ReplyHandler {
 public:
  void on_reply(Rank, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    ++count;
    codes[code]++;
    std::uint64_t value = 0;
    if (reply.size() == sizeof value) std::memcpy(&value, reply.data(), sizeof value);
    // The n-th request, which brings n, finds the sum of all before it.
    right = right && code == Code::ok && value == ticket * (ticket + 1) / 2;
  }
  std::uint64_t count = 0;
  std::map<Code, std::uint64_t> codes;
  bool right = true;
};

class UcxTransportTest : public testing::Test {
 protected:
  static constexpr Rank origin = 0, target = 1;

  void SetUp() override {
    for (const Rank rank : {origin, target}) {
      ranks_.push_back(make(rank, secret(1)));
      if (!ranks_.back()) GTEST_SKIP() << refusal_;
    }
    ranks_[origin]->introduce(target, ranks_[target]->address());
  }

  std::unique_ptr<UcxTransport> make(Rank rank, const link::Secret& known, const UcxOptions& ucx = over_tcp) {
    UcxTransport::Options options;
    options.rank = rank;
    options.ranks = 2;
    options.secret = known;
    options.ucx = ucx;
    options.library = ucx_library_for_tests();
    options.now_ns = [this] { return now_ns_.load(std::memory_order_relaxed); };
    options.on_lost = [this, rank](Rank peer, const std::string& why) { lost_[rank].push_back({peer, why}); };
    options.on_hand_over = [this, rank] { ++handed_over_[rank]; };
    auto made = UcxTransport::create(options);
    if (made.is_ok()) return std::move(made.value());
    refusal_ = made.take_status().text();
    return nullptr;
  }

  UcxTransport& at(Rank rank) { return *ranks_[rank]; }
  void pass(std::uint64_t ns) { now_ns_.fetch_add(ns, std::memory_order_relaxed); }

  // One round of both, in which a little time passes.
  void round(Adder& adder, Sums& sums) {
    pass(100'000);
    at(origin).tick();
    at(target).poll_requests(adder, 64);
    at(origin).poll_replies(target, sums);
  }

  // Until `done`, with all that was handed over looked after as an agent does.
  template <class Done>
  void rounds_until(Adder& adder, Sums& sums, Done done) {
    while (!done()) round(adder, sums);
  }
  void connect(Adder& adder, Sums& sums) {
    at(origin).open(target);
    rounds_until(adder, sums, [&] { return at(origin).state(target) == link::LinkState::open; });
  }
  // A request is on its way, and nothing is heard for longer than may be.
  void ask_in_vain() {
    Adder adder;
    Sums sums;
    const std::uint64_t value = 1;
    connect(adder, sums);
    ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
    pass(31'000'000'000);
  }
  // Nothing of the origin's is under way and its agent has seen that.
  void settle(Adder& adder, Sums& sums) {
    rounds_until(adder, sums, [&] { return at(origin).next_deadline_ns() == link::LinkSender::never; });
    at(origin).is_unattended(Network::Threads::away);
    handed_over_[origin] = 0;
  }

  using Lost = std::vector<std::pair<Rank, std::string>>;
  Lost lost_[2];  // as each rank was told
  std::uint64_t handed_over_[2] = {};
  std::string refusal_;
  std::atomic<std::uint64_t> now_ns_{1};  // moved on by hand
  std::vector<std::unique_ptr<UcxTransport>> ranks_;
};

TEST_F(UcxTransportTest, serves_each_request_once_and_in_order_over_connections_that_break) {
  constexpr std::uint64_t count = 20'000;
  Adder adder;
  Sums sums;
  std::size_t broken = 0;
  std::uint64_t posted = 0, next_break = 500;
  while (sums.count < count) {
    for (std::uint64_t value = posted + 1; value <= count; value = posted + 1) {
      if (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8})) break;
      ++posted;
    }
    if (sums.count > next_break) {
      broken += break_all_connections();
      next_break += 997;
    }
    round(adder, sums);
  }
  EXPECT_GT(broken, 10u);
  EXPECT_EQ(adder.calls, count);
  EXPECT_TRUE(adder.in_order);
  EXPECT_TRUE(sums.right);
  EXPECT_EQ(sums.codes[Code::ok], count);
}

TEST_F(UcxTransportTest, wakes_an_agent_that_sleeps_on_its_descriptor) {
  constexpr std::uint64_t count = 2'000;
  const int stop = eventfd(0, EFD_CLOEXEC);
  Adder adder;
  std::uint64_t sleeps = 0;
  std::thread agent([&] {
    pollfd asleep[] = {{.fd = at(target).request_descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = stop, .events = POLLIN, .revents = 0}};
    while (asleep[1].revents == 0) {
      at(target).poll_requests(adder, 64);
      auto armed = at(target).arm_requests();
      if (!armed.is_ok() || !armed.value()) continue;
      poll(asleep, 2, -1);
      ++sleeps;
    }
  });
  Sums sums;
  for (std::uint64_t value = 1; value <= count; ++value) {
    while (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}))
      at(origin).poll_replies(target, sums);
    while (sums.count < value) at(origin).poll_replies(target, sums);
  }
  const std::uint64_t one = 1;
  ASSERT_EQ(write(stop, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  agent.join();
  close(stop);
  EXPECT_EQ(adder.calls, count);
  EXPECT_TRUE(sums.right);
  EXPECT_GT(sleeps, 0u);
}

TEST_F(UcxTransportTest, answers_peer_failed_when_a_peer_is_silent_for_too_long) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  at(origin).open(target);
  while (at(origin).state(target) != link::LinkState::open) round(adder, sums);
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  pass(29'000'000'000);
  at(origin).tick();
  at(origin).poll_replies(target, sums);
  EXPECT_EQ(sums.count, 0u);
  pass(2'000'000'000);
  at(origin).tick();
  at(origin).poll_replies(target, sums);
  EXPECT_EQ(sums.codes[Code::peer_failed], 1u);
  EXPECT_EQ(at(origin).state(target), link::LinkState::failed);
  EXPECT_EQ(adder.calls, 0u);
}

TEST_F(UcxTransportTest, says_once_that_a_silent_peer_is_lost_and_why) {
  ask_in_vain();
  for (int i = 0; i < 3; ++i) at(origin).tick();
  at(origin).give_up(target);
  EXPECT_EQ(lost_[origin], (Lost{{target, "nothing heard for 30 s (FARSUM_NET_TIMEOUT)"}}));
}

TEST_F(UcxTransportTest, says_that_ucx_would_not_connect) {
  const std::unique_ptr<UcxTransport> other = make(target, secret(1), {.transports = "posix", .devices = "all"});
  if (!other) GTEST_SKIP() << refusal_;
  const std::unique_ptr<UcxTransport> self = make(origin, secret(1));
  self->introduce(target, other->address());
  const std::uint64_t value = 1;
  EXPECT_FALSE(self->try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  pass(31'000'000'000);
  self->tick();
  ASSERT_EQ(lost_[origin].size(), 1u);
  EXPECT_THAT(lost_[origin].front().second,
              testing::StartsWith("nothing heard for 30 s (FARSUM_NET_TIMEOUT); UCX: connecting failed: "));
}

// Who takes the answer names the peer, and finds out whom.
TEST_F(UcxTransportTest, says_that_a_peer_is_lost_before_it_answers_for_it) {
  class Question final : public ReplyHandler {
   public:
    explicit Question(const Lost& lost) : lost_(lost) {}
    void on_reply(Rank, std::uint64_t, Code code, std::span<const std::byte>) override {
      answer = code;
      was_told = !lost_.empty();
    }
    Code answer = Code::ok;
    bool was_told = false;

   private:
    const Lost& lost_;
  };
  ask_in_vain();
  Question question(lost_[origin]);
  at(origin).poll_replies(target, question);  // finds the silence, and answers
  EXPECT_EQ(question.answer, Code::peer_failed);
  EXPECT_TRUE(question.was_told);
}

TEST_F(UcxTransportTest, says_that_a_peer_is_lost_that_was_given_up) {
  at(origin).give_up(target);
  at(origin).give_up(target);
  EXPECT_EQ(lost_[origin], (Lost{{target, "it was given up here"}}));
}

TEST_F(UcxTransportTest, says_that_a_peer_is_lost_that_takes_this_rank_for_dead) {
  Adder adder;
  Sums sums;
  at(target).forget(origin);
  at(origin).open(target);
  rounds_until(adder, sums, [&] { return !lost_[origin].empty(); });
  EXPECT_EQ(lost_[origin], (Lost{{target, "it was told that this rank is dead, and refuses it"}}));
}

// ---- What is handed to the agent.

TEST_F(UcxTransportTest, hands_over_a_link_that_is_not_open_yet) {
  const std::uint64_t value = 1;
  EXPECT_FALSE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  EXPECT_EQ(handed_over_[origin], 1u);
  EXPECT_FALSE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  EXPECT_EQ(handed_over_[origin], 1u);
}

TEST_F(UcxTransportTest, keeps_a_small_request_to_itself_that_has_left) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  connect(adder, sums);
  settle(adder, sums);
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
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
    while (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8, .may_keep = true}))
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
      if (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8})) break;
      ++posted;
    }
    return sums.count == 3000;
  });
  settle(adder, sums);
  const std::uint64_t before = at(target).counters().serving.frames_sent;
  for (std::uint64_t value = 3001; value <= 3000 + count; ++value) {
    ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8, .may_keep = true}));
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
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(first), {}, {.reply_capacity = 8, .may_keep = true}));
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(second), {}, {.reply_capacity = 8, .may_keep = true}));
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
    ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, how));
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
    ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
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
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(sums.count + 1), {}, {.reply_capacity = 8}));
  EXPECT_FALSE(at(origin).is_unattended(Network::Threads::away)) << "a thread has polled";
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::away));
  const std::uint64_t left = sums.count + 1;
  handed_over_[origin] = 0;
  rounds_until(adder, sums, [&] { return sums.count == left; });
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
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
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

TEST_F(UcxTransportTest, says_whether_a_tick_found_anything_to_do) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  connect(adder, sums);
  settle(adder, sums);
  while (at(origin).tick()) {
  }
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
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
        EXPECT_TRUE(sender_.try_post(target, bytes_of(served_), {}, {}));
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
    ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {}));
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

// ---- The end.

TEST_F(UcxTransportTest, gives_back_what_was_lent_to_it_when_it_is_abandoned) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  std::vector<std::byte> body(40'000, std::byte{1}), place(8, std::byte{2});
  const PostOptions lending{.reply_capacity = 8, .lends_body = true, .reply_into = place};
  const auto post = [&] {
    rounds_until(adder, sums, [&] { return at(origin).try_post(target, {}, body, lending).has_value(); });
  };
  post();
  rounds_until(adder, sums, [&] { return sums.count == 1; });
  EXPECT_EQ(place, std::vector<std::byte>(8)) << "the sum before the first";
  place.assign(8, std::byte{2});
  post();
  at(origin).abandon(target);
  body.assign(body.size(), std::byte{9});
  at(origin).poll_replies(target, sums);
  EXPECT_EQ(sums.codes[Code::peer_failed], 1u);
  const std::uint64_t before = adder.sum, value = 0x0101'0101'0101'0101;
  for (int i = 0; i < 100; ++i) round(adder, sums);
  EXPECT_TRUE(adder.sum == before || adder.sum == before + value) << "it left whole, or not at all";
  EXPECT_EQ(place, std::vector<std::byte>(8, std::byte{2}));
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  at(origin).poll_replies(target, sums);
  EXPECT_EQ(sums.codes[Code::peer_failed], 2u);
  EXPECT_TRUE(lost_[origin].empty());
}

TEST_F(UcxTransportTest, says_goodbye_and_nobody_loses_anybody) {
  Adder adder[2];
  Sums sums;
  const std::uint64_t value = 1;
  at(target).introduce(origin, at(origin).address());
  at(target).open(origin);
  connect(adder[target], sums);
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  std::thread other([&] { at(target).close(adder[target]); });
  at(origin).close(adder[origin]);
  other.join();
  EXPECT_EQ(adder[target].calls, 1u);
  EXPECT_EQ(at(origin).state(target), link::LinkState::closed);
  EXPECT_EQ(at(target).state(origin), link::LinkState::closed);
  EXPECT_TRUE(lost_[origin].empty());
  EXPECT_TRUE(lost_[target].empty());
  EXPECT_EQ(at(origin).counters().endpoints + at(target).counters().endpoints, 0u);
}

TEST_F(UcxTransportTest, waits_two_seconds_at_most_for_a_peer_that_does_not_say_goodbye) {
  Adder adder;
  Sums sums;
  connect(adder, sums);
  std::atomic<bool> is_closed{false};
  std::thread time([&] {
    while (!is_closed) pass(1'000);
  });
  const std::uint64_t before = now_ns_;
  at(origin).close(adder);
  is_closed = true;
  time.join();
  EXPECT_GE(now_ns_ - before, 2'000'000'000u);
  EXPECT_EQ(at(origin).state(target), link::LinkState::closing);
}

TEST_F(UcxTransportTest, counts_what_travels_each_way) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  connect(adder, sums);
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  rounds_until(adder, sums, [&] { return sums.count == 1; });
  const NetworkCounters asks = at(origin).counters(), serves = at(target).counters();
  EXPECT_EQ(asks.asking.frames_sent, serves.serving.frames_received);
  EXPECT_EQ(asks.asking.bytes_sent, serves.serving.bytes_received);
  EXPECT_EQ(asks.asking.frames_received, serves.serving.frames_sent);
  EXPECT_EQ(asks.asking.bytes_received, serves.serving.bytes_sent);
  EXPECT_GE(asks.asking.frames_sent, 2u);
  EXPECT_EQ(asks.serving.frames_received + serves.asking.frames_sent, 0u);
  EXPECT_EQ(asks.endpoints, 1u);
  EXPECT_EQ(serves.endpoints, 1u);
}

TEST_F(UcxTransportTest, has_a_deadline_only_while_something_is_due) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  EXPECT_EQ(at(origin).next_deadline_ns(), link::LinkSender::never);
  while (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8})) round(adder, sums);
  EXPECT_NE(at(origin).next_deadline_ns(), link::LinkSender::never);
  while (sums.count == 0 || at(origin).next_deadline_ns() != link::LinkSender::never) round(adder, sums);
}

TEST_F(UcxTransportTest, serves_nobody_who_does_not_know_the_secret) {
  const auto stranger = make(origin, secret(2));
  ASSERT_NE(stranger, nullptr);
  stranger->introduce(target, at(target).address());
  stranger->open(target);
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  while (at(target).strangers() == 0) {
    stranger->tick();
    round(adder, sums);
    EXPECT_FALSE(stranger->try_post(target, bytes_of(value), {}, {.reply_capacity = 8}));
  }
  EXPECT_NE(stranger->state(target), link::LinkState::open);
  // The job goes on.
  while (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8})) round(adder, sums);
  while (sums.count == 0) round(adder, sums);
  EXPECT_EQ(adder.calls, 1u);
}

TEST_F(UcxTransportTest, serves_the_hosts_that_are_let_in) {
  std::vector<std::uint32_t> own_hosts;
  ifaddrs* all = nullptr;
  ASSERT_EQ(getifaddrs(&all), 0);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    own_hosts.push_back(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
  }
  freeifaddrs(all);
  for (const Rank rank : {origin, target}) {
    const Status status = at(rank).let_in_only(own_hosts);
    ASSERT_TRUE(status.is_ok()) << status.text();
  }
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  while (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8})) round(adder, sums);
  while (sums.count == 0) round(adder, sums);
  EXPECT_TRUE(sums.right);
}

TEST_F(UcxTransportTest, counts_messages_that_are_no_frames_and_goes_on) {
  std::string refusal;
  const auto strangers = TwoWorkers::make(over_tcp, refusal);
  ASSERT_NE(strangers, nullptr) << refusal;
  auto endpoint = strangers->a->connect(at(target).address());
  ASSERT_TRUE(endpoint.is_ok()) << endpoint.take_status().text();
  Adder adder;
  Sums sums;
  std::uint64_t sent = 0;
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 5'000u}) {
    for (const unsigned channel : {1u, 2u, 3u}) {
      const Bytes garbage(bytes, static_cast<std::byte>(bytes + channel));
      const std::span<const std::byte> pieces[] = {garbage};
      ASSERT_NE(strangers->a->send(endpoint.value(), channel, pieces, 0), UcxWorker::Sent::failed);
      ++sent;
      while (at(target).strangers() < sent) {
        strangers->a->progress();
        round(adder, sums);
      }
    }
  }
  const std::uint64_t value = 1;
  while (!at(origin).try_post(target, bytes_of(value), {}, {.reply_capacity = 8})) round(adder, sums);
  while (sums.count == 0) round(adder, sums);
  EXPECT_TRUE(sums.right);
}

}  // namespace
}  // namespace farsum
