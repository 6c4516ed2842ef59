// Two ranks as the runtime makes them: an engine that asks, an agent that serves, sleeps on descriptors and looks after
// what threads that compute have left behind.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "protocol/messages.hpp"
#include "protocol/origin/engine.hpp"
#include "transport/ucx/broken_connections.hpp"
#include "transport/ucx/two_workers.hpp"
#include "transport/ucx/ucx_transport.hpp"

namespace farsum {
namespace {

constexpr std::size_t memory_bytes = std::size_t{8} << 20;

// Puts, gets and sums of 64-bit words into memory of its own. Counts what has arrived.
class Memory final : public RequestHandler {
 public:
  Served on_request(Rank, std::span<const std::byte> bytes, std::span<std::byte> room, ReplyToken) override {
    const auto message = wire::decode(bytes);
    if (!message) return {.code = Code::argument};
    const wire::MessageHeader& header = message->header;
    std::byte* const at = memory_.data() + header.offset;
    if (returns_data(header.operation)) std::memcpy(room.data(), at, header.bytes);
    if (header.operation == OperationKind::put) {
      std::memcpy(at, message->operand.data(), header.bytes);
    } else if (header.operation == OperationKind::get_accumulate) {
      std::uint64_t word = 0, more = 0;
      std::memcpy(&word, at, sizeof word);
      std::memcpy(&more, message->operand.data(), sizeof more);
      word += more;
      std::memcpy(at, &word, sizeof word);
    }
    // Release: pairs with the acquire load of whoever waits for what has arrived.
    const std::uint64_t arrived = arrived_.fetch_add(header.bytes, std::memory_order_release) + header.bytes;
    if (on_arrival) on_arrival(arrived);
    return {.reply_bytes = static_cast<std::uint32_t>(returns_data(header.operation) ? header.bytes : 0)};
  }

  std::uint64_t arrived() const { return arrived_.load(std::memory_order_acquire); }
  const std::byte* data() const { return memory_.data(); }

  std::function<void(std::uint64_t arrived)> on_arrival;  // the agent calls; to be set before there is one

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(memory_bytes);
  std::atomic<std::uint64_t> arrived_{0};
};

class TestRank {
 public:
  static constexpr std::uint32_t ranks = 2;

  TestRank(Rank rank, const UcxOptions& ucx) {
    UcxTransport::Options options;
    options.rank = rank;
    options.ranks = ranks;
    options.ucx = ucx;
    options.library = ucx_library_for_tests();
    options.on_hand_over = [this] { wake(); };
    auto made = UcxTransport::create(options);
    if (!made.is_ok()) {
      refusal = made.take_status().text();
      return;
    }
    transport = std::move(made.value());
    OriginEngine::Options all;
    all.peers = ranks;
    all.on_coalescing = [this] { wake(); };
    engine = std::make_unique<OriginEngine>(all, *transport);
  }
  ~TestRank() {
    stop();
    close(wake_);
  }

  void start_agent() { agent_ = std::thread(&TestRank::look_after, this); }
  void stop() {
    if (!agent_.joinable()) return;
    is_stopping_.store(true, std::memory_order_relaxed);  // the wake orders it
    wake();
    agent_.join();
  }

  std::string refusal;
  Memory memory;
  std::unique_ptr<UcxTransport> transport;
  std::unique_ptr<OriginEngine> engine;
  std::atomic<std::uint64_t> sleeps{0};

 private:
  void wake() {
    const std::uint64_t one = 1;
    EXPECT_EQ(write(wake_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }

  void look_after() {
    while (!is_stopping_.load(std::memory_order_relaxed)) {
      transport->poll_requests(memory, 64);
      transport->tick();
      engine->progress_unattended();
      engine->send_coalesced();
      sleep_until_something_comes();
    }
  }

  void sleep_until_something_comes() {
    const bool looks_after_replies = transport->is_unattended(Network::Threads::away);
    if (looks_after_replies && !is_armed(transport->arm_replies())) return;
    if (transport->has_unfinished_request() || !is_armed(transport->arm_requests())) return;
    pollfd descriptors[] = {{.fd = wake_, .events = POLLIN, .revents = 0},
                            {.fd = transport->request_descriptor(), .events = POLLIN, .revents = 0},
                            {.fd = transport->reply_descriptor(), .events = POLLIN, .revents = 0}};
    poll(descriptors, looks_after_replies ? 3 : 2, milliseconds_left());
    sleeps.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t count = 0;
    const bool was_woken = descriptors[0].revents != 0;
    EXPECT_TRUE(!was_woken || read(wake_, &count, sizeof count) == static_cast<ssize_t>(sizeof count));
  }

  static bool is_armed(const Result<bool>& armed) { return armed.is_ok() && armed.value(); }
  int milliseconds_left() const {
    const std::uint64_t deadline = transport->next_deadline_ns();
    if (engine->is_coalescing()) return 1;
    if (deadline == UcxTransport::never) return -1;
    const auto now = static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
    return deadline <= now ? 0 : static_cast<int>(std::min<std::uint64_t>((deadline - now) / 1'000'000 + 1, 60'000));
  }

  const int wake_ = eventfd(0, EFD_CLOEXEC);
  std::atomic<bool> is_stopping_{false};
  std::thread agent_;
};

class UcxUnattended : public testing::TestWithParam<const char*> {
 protected:
  static constexpr Rank origin = 0, target = 1;

  void SetUp() override {
    const UcxOptions ucx{.transports = GetParam(), .devices = "all"};
    for (const Rank rank : {origin, target}) ranks_[rank] = std::make_unique<TestRank>(rank, ucx);
    for (const Rank rank : {origin, target}) {
      if (!at(rank).transport) GTEST_SKIP() << at(rank).refusal;
    }
    for (const Rank rank : {origin, target}) {
      at(rank).transport->introduce(1 - rank, at(1 - rank).transport->address());
    }
  }
  void start() {
    for (const auto& rank : ranks_) rank->start_agent();
  }
  void TearDown() override {
    for (const auto& rank : ranks_) rank->stop();
  }

  TestRank& at(Rank rank) { return *ranks_[rank]; }

  bool submit(Rank from, const Operation& operation) {
    return at(from).engine->submit(1 - from, 1, operation, outstanding_[from], nullptr);
  }
  void flush(Rank from) {
    while (outstanding_[from].count.load(std::memory_order_acquire) != 0) at(from).engine->progress(1 - from);
  }

  Outstanding outstanding_[TestRank::ranks];
  std::array<std::unique_ptr<TestRank>, TestRank::ranks> ranks_;
};

Operation put_of(const std::vector<std::byte>& bytes, std::uint64_t offset = 0) {
  Operation operation;
  operation.bytes = bytes.size();
  operation.operand = bytes.data();
  operation.offset = offset;
  return operation;
}

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> made(count);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

TEST_P(UcxUnattended, finishes_a_put_while_its_thread_computes) {
  start();
  const auto sent = random_bytes(memory_bytes, 1);
  ASSERT_TRUE(submit(origin, put_of(sent)));
  while (at(target).memory.arrived() != sent.size()) std::this_thread::yield();
  EXPECT_EQ(std::memcmp(at(target).memory.data(), sent.data(), sent.size()), 0);
  while (outstanding_[origin].count.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

TEST_P(UcxUnattended, finishes_small_operations_that_were_held_while_their_thread_computes) {
  start();
  const auto sent = random_bytes(3 * 8, 4);
  const std::vector<std::byte> parts[] = {
      {sent.begin(), sent.begin() + 8}, {sent.begin() + 8, sent.begin() + 16}, {sent.begin() + 16, sent.end()}};
  ASSERT_TRUE(submit(origin, put_of(parts[0])));
  flush(origin);  // the link is open
  ASSERT_TRUE(submit(origin, put_of(parts[1], 8)));
  ASSERT_TRUE(submit(origin, put_of(parts[2], 16)));
  while (at(target).memory.arrived() != sent.size()) std::this_thread::yield();
  EXPECT_EQ(std::memcmp(at(target).memory.data(), sent.data(), sent.size()), 0);
  flush(origin);
}

// By hand: `--gtest_also_run_disabled_tests --gtest_filter=*costs*` prints what a small put costs its origin.
TEST_P(UcxUnattended, DISABLED_costs_this_much) {
  start();
  constexpr int count = 200'000;
  const std::vector<std::byte> word(8);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    while (!submit(origin, put_of(word))) at(origin).engine->progress(target);
  }
  flush(origin);
  const auto ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  const NetworkCounters counters = at(origin).transport->counters();
  std::printf("%lld ns each, %llu frames\n", static_cast<long long>(ns / count),
              static_cast<unsigned long long>(counters.asking.frames_sent));
}

TEST_P(UcxUnattended, finishes_what_one_thread_left_while_another_polls) {
  start();
  const auto sent = random_bytes(memory_bytes, 2);
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    Outstanding outstanding;
    std::uint64_t word = 0, one = 1;
    Operation sum;
    sum.kind = OperationKind::get_accumulate;
    sum.type = ops::ElementType::uint64;
    sum.op = ops::Operator::sum;
    sum.bytes = sizeof word;
    sum.operand = reinterpret_cast<const std::byte*>(&one);
    sum.result = reinterpret_cast<std::byte*>(&word);
    while (!is_done) {
      while (!at(origin).engine->submit(target, 1, sum, outstanding, nullptr)) at(origin).engine->progress(target);
      while (outstanding.count.load(std::memory_order_acquire) != 0) at(origin).engine->progress(target);
    }
  });
  ASSERT_TRUE(submit(origin, put_of(sent)));
  while (outstanding_[origin].count.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  is_done = true;
  other.join();
}

TEST_P(UcxUnattended, leaves_the_agent_no_deadline_when_all_is_done) {
  start();
  const std::vector<std::byte> sent(100'000);
  ASSERT_TRUE(submit(origin, put_of(sent)));
  while (outstanding_[origin].count.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  while (at(origin).transport->next_deadline_ns() != UcxTransport::never) std::this_thread::yield();
  at(origin).stop();
  EXPECT_FALSE(at(origin).transport->is_unattended(Network::Threads::away));
}

// Both ask each other all the time; each word and each byte comes once.
TEST_P(UcxUnattended, keeps_its_promises_while_both_ask_and_serve) {
  start();
  constexpr int rounds = 300;
  std::thread sides[TestRank::ranks];
  for (const Rank rank : {origin, target}) {
    sides[rank] = std::thread([this, rank] {
      std::mt19937 random(rank);
      std::uint64_t before[rounds] = {}, one = 1;
      const auto sent = random_bytes(200'000, rank);
      for (int round = 0; round < rounds; ++round) {
        Operation sum;
        sum.kind = OperationKind::get_accumulate;
        sum.type = ops::ElementType::uint64;
        sum.op = ops::Operator::sum;
        sum.bytes = sizeof one;
        sum.operand = reinterpret_cast<const std::byte*>(&one);
        sum.result = reinterpret_cast<std::byte*>(&before[round]);
        while (!submit(rank, sum)) at(rank).engine->progress(1 - rank);
        while (random() % 4 == 0 && !submit(rank, put_of(sent, 4096))) at(rank).engine->progress(1 - rank);
        if (random() % 8 == 0) flush(rank);
      }
      flush(rank);
      for (int round = 0; round < rounds; ++round) ASSERT_EQ(before[round], static_cast<std::uint64_t>(round));
    });
  }
  for (std::thread& side : sides) side.join();
}

INSTANTIATE_TEST_SUITE_P(Over, UcxUnattended, testing::Values("tcp", "posix"),
                         [](const auto& over) { return std::string(over.param); });

class UcxUnattendedTcp : public UcxUnattended {};

TEST_P(UcxUnattendedTcp, finishes_a_put_over_connections_that_break_while_its_thread_computes) {
  const auto sent = random_bytes(memory_bytes, 3);
  std::size_t broken = 0;
  std::uint64_t next = 1;
  at(target).memory.on_arrival = [&](std::uint64_t arrived) {
    if (arrived < next) return;
    broken += break_all_connections();
    next = arrived + memory_bytes / 8;
  };
  start();
  ASSERT_TRUE(submit(origin, put_of(sent)));
  while (outstanding_[origin].count.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  EXPECT_GE(broken, 8u);
  EXPECT_EQ(std::memcmp(at(target).memory.data(), sent.data(), sent.size()), 0);
  EXPECT_EQ(at(target).memory.arrived(), sent.size()) << "nothing came twice";
}

INSTANTIATE_TEST_SUITE_P(Over, UcxUnattendedTcp, testing::Values("tcp"),
                         [](const auto& over) { return std::string(over.param); });

}  // namespace
}  // namespace farsum
