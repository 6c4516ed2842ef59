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
#include <vector>

#include <gtest/gtest.h>

#include "transport/ucx/two_workers.hpp"
#include "transport/ucx/ucx_sockets.hpp"

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

  std::unique_ptr<UcxTransport> make(Rank rank, const link::Secret& known) {
    UcxTransport::Options options;
    options.rank = rank;
    options.ranks = 2;
    options.secret = known;
    options.ucx = over_tcp;
    options.library = ucx_library_for_tests();
    options.now_ns = [this] { return now_ns_.load(std::memory_order_relaxed); };
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

  std::string refusal_;
  std::atomic<std::uint64_t> now_ns_{1};  // moved on by hand
  std::vector<std::unique_ptr<UcxTransport>> ranks_;
};

// As a network does it that forgets connections: both ends read their end.
std::size_t break_all_connections() {
  std::size_t broken = 0;
  for (const int descriptor : open_tcp_sockets()) {
    int listens = 0;
    socklen_t bytes = sizeof listens;
    getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
    if (listens == 0 && shutdown(descriptor, SHUT_RDWR) == 0) ++broken;
  }
  return broken;
}

TEST_F(UcxTransportTest, serves_each_request_once_and_in_order_over_connections_that_break) {
  constexpr std::uint64_t count = 20'000;
  Adder adder;
  Sums sums;
  std::size_t broken = 0;
  std::uint64_t posted = 0, next_break = 500;
  while (sums.count < count) {
    for (std::uint64_t value = posted + 1; value <= count; value = posted + 1) {
      if (!at(origin).try_post(target, bytes_of(value), {}, 8)) break;
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
    while (!at(origin).try_post(target, bytes_of(value), {}, 8)) at(origin).poll_replies(target, sums);
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
  ASSERT_TRUE(at(origin).try_post(target, bytes_of(value), {}, 8));
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

TEST_F(UcxTransportTest, has_a_deadline_only_while_something_is_due) {
  Adder adder;
  Sums sums;
  const std::uint64_t value = 1;
  EXPECT_EQ(at(origin).next_deadline_ns(), link::LinkSender::never);
  while (!at(origin).try_post(target, bytes_of(value), {}, 8)) round(adder, sums);
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
    EXPECT_FALSE(stranger->try_post(target, bytes_of(value), {}, 8));
  }
  EXPECT_NE(stranger->state(target), link::LinkState::open);
  // The job goes on.
  while (!at(origin).try_post(target, bytes_of(value), {}, 8)) round(adder, sums);
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
  while (!at(origin).try_post(target, bytes_of(value), {}, 8)) round(adder, sums);
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
  while (!at(origin).try_post(target, bytes_of(value), {}, 8)) round(adder, sums);
  while (sums.count == 0) round(adder, sums);
  EXPECT_TRUE(sums.right);
}

}  // namespace
}  // namespace farsum
