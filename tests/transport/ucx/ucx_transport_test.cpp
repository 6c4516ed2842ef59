// What the transport between hosts promises beyond the contract: over broken connections, to a sleeping agent that
// serves, against strangers.
#include "transport/ucx/ucx_transport.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/ucx/broken_connections.hpp"
#include "transport/ucx/two_transports.hpp"

namespace farsum {
namespace {

TEST_F(UcxTransportTest, serves_each_request_once_and_in_order_over_connections_that_break) {
  constexpr std::uint64_t count = 20'000;
  Adder adder;
  Sums sums;
  std::size_t broken = 0;
  std::uint64_t posted = 0, next_break = 500;
  while (sums.count < count) {
    for (std::uint64_t value = posted + 1; value <= count; value = posted + 1) {
      if (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8})) break;
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
    while (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}))
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
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
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
  EXPECT_EQ(lost_[origin], (Lost{{target, "nothing heard for 30 s (FARSUM_NET_TIMEOUT)"}}));
}

TEST_F(UcxTransportTest, says_that_ucx_would_not_connect) {
  const std::unique_ptr<UcxTransport> other = make(target, secret(1), {.transports = "posix", .devices = "all"});
  if (!other) GTEST_SKIP() << refusal_;
  const std::unique_ptr<UcxTransport> self = make(origin, secret(1));
  self->introduce(target, other->address());
  const std::uint64_t value = 1;
  EXPECT_FALSE(self->try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
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
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
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
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
  std::thread other([&] { at(target).close(adder[target]); });
  at(origin).close(adder[origin]);
  other.join();
  EXPECT_EQ(adder[target].calls, 1u);
  EXPECT_EQ(at(origin).state(target), link::LinkState::closed);
  EXPECT_EQ(at(target).state(origin), link::LinkState::closed);
  EXPECT_TRUE(lost_[origin].empty());
  EXPECT_TRUE(lost_[target].empty());
  // UCX may end what it was told to close a little later.
  const auto endpoints = [this] { return at(origin).counters().endpoints + at(target).counters().endpoints; };
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (endpoints() != 0 && std::chrono::steady_clock::now() < give_up)
    for (const Rank rank : {origin, target}) {
      at(rank).tick();
      at(rank).poll_requests(adder[rank], 64);
    }
  EXPECT_EQ(endpoints(), 0u);
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
  ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
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
  while (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8})) round(adder, sums);
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
    EXPECT_FALSE(stranger->try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
  }
  EXPECT_NE(stranger->state(target), link::LinkState::open);
  // The job goes on.
  while (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8})) round(adder, sums);
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
  while (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8})) round(adder, sums);
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
  while (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8})) round(adder, sums);
  while (sums.count == 0) round(adder, sums);
  EXPECT_TRUE(sums.right);
}

// With the job's secret: one that is shorter than it says, and one of a connection that was never begun.
TEST_F(UcxTransportTest, refuses_and_counts_frames_of_the_job_that_make_no_sense) {
  std::string refusal;
  const auto workers = TwoWorkers::make(over_tcp, refusal);
  ASSERT_NE(workers, nullptr) << refusal;
  auto endpoint = workers->a->connect(at(target).address());
  ASSERT_TRUE(endpoint.is_ok()) << endpoint.take_status().text();
  const std::uint64_t value = 1;
  const link::RequestRecord record{.bytes = sizeof value, .reply_capacity = 8, .flags = 0, .reserved = 0};
  link::FrameHeader header{};
  header.magic_word = link::magic;
  header.version = link::wire_version;
  header.kind = link::FrameKind::requests;
  header.epoch = 7;
  header.from = origin;
  header.to = target;
  header.records = 1;
  header.key = link::key_of(secret(1), origin, target, header.epoch, false);
  Adder adder;
  Sums sums;
  std::uint64_t refused = 0;
  for (const std::uint64_t missing : {1u, 0u}) {
    header.payload_bytes = static_cast<std::uint32_t>(sizeof record + sizeof value + missing);
    const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&header, 1)),
                                                 std::as_bytes(std::span(&record, 1)), word_bytes(value)};
    ASSERT_NE(workers->a->send(endpoint.value(), 1, pieces, 0), UcxWorker::Sent::failed);
    ++refused;
    while (at(target).counters().refused + at(target).strangers() < refused) {
      workers->a->progress();
      round(adder, sums);
    }
    EXPECT_EQ(at(target).counters().refused, refused);
  }
  EXPECT_EQ(at(target).strangers(), 0u);
  EXPECT_EQ(adder.calls, 0u);
  while (!at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8})) round(adder, sums);
  rounds_until(adder, sums, [&] { return sums.count == 1; });
  EXPECT_TRUE(sums.right);
  EXPECT_EQ(adder.calls, 1u);
}

}  // namespace
}  // namespace farsum
