// Who serves: the agent, or a thread that attends. A network of the test brings requests one at a time, each of which
// must be served whatever the threads do meanwhile.
#include "progress/attendance.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "no_requests.hpp"
#include "progress/agenda.hpp"
#include "progress/agent.hpp"
#include "progress/wake_sources.hpp"
#include "transport/shm/node_segment.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum::test {
namespace {

// Serves by taking its events. One thread at a time may be inside; it is the agent's transport, too.
class EventNetwork final : public Network {
 public:
  EventNetwork() : events_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), replies_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~EventNetwork() override {
    ::close(events_);
    ::close(replies_);
  }
  EventNetwork(const EventNetwork&) = delete;
  EventNetwork& operator=(const EventNetwork&) = delete;

  void bring_request() const { EXPECT_EQ(eventfd_write(events_, 1), 0); }
  std::uint64_t served() const { return served_.load(); }
  bool await_served(std::uint64_t count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (served() < count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return served() >= count;
  }

  std::size_t poll_requests(RequestHandler&, std::size_t) override {
    const bool was_inside = inside_.exchange(true);
    EXPECT_FALSE(was_inside);
    eventfd_t count = 0;
    const bool any = eventfd_read(events_, &count) == 0;
    if (on_serving) on_serving();
    if (any) served_ += count;
    inside_ = false;
    return any ? 1 : 0;
  }
  bool has_unfinished_request() const override { return has_unfinished; }
  int request_descriptor() const override { return events_; }
  Result<bool> arm_requests() override {
    EXPECT_FALSE(inside_.load());
    pollfd waited{.fd = events_, .events = POLLIN, .revents = 0};
    return poll(&waited, 1, 0) == 0;
  }
  int reply_descriptor() const override { return replies_; }
  Result<bool> arm_replies() override { return true; }

  std::span<const std::byte> address() const override { return {}; }
  Status let_in_only(const std::vector<std::uint32_t>&) override { return {}; }
  void introduce(Rank, std::span<const std::byte>) override {}
  void expect_receipts() override {}
  bool tick() override { return false; }
  std::uint64_t next_deadline_ns() override { return never; }
  bool is_unattended(Threads) override { return false; }
  void close(RequestHandler&) override {}
  NetworkCounters counters() const override { return {}; }
  Capabilities capabilities(Rank) const override { return {}; }
  std::optional<std::uint64_t> try_post(Rank, std::span<const std::byte>, std::span<const std::byte>,
                                        const PostOptions&) override {
    return std::nullopt;
  }
  std::size_t poll_replies(Rank, ReplyHandler&) override { return 0; }
  void complete(ReplyToken, Code, std::span<const std::byte>) override {}
  Transfer read(Rank, std::uint64_t, std::span<std::byte>, std::uint64_t) override { return Transfer::refused; }
  Transfer write(Rank, std::uint64_t, std::span<const std::byte>, std::uint64_t) override { return Transfer::refused; }

  std::function<void()> on_serving;  // set before anybody serves
  std::atomic<bool> has_unfinished{false};

 private:
  int events_;
  int replies_;
  std::atomic<std::uint64_t> served_{0};
  std::atomic<bool> inside_{false};
};

// A rank with an agent that sleeps on that network.
struct Serving : testing::Test {
  struct Chores final : AgentChores {
    explicit Chores(Attendance& of) : attendance(of) {}
    std::uint64_t run(bool has_unfinished) override {
      const std::lock_guard lock(attendance.serving());
      attendance.look();
      agenda.come_back_for("unfinished requests", has_unfinished);
      return agenda.sleep_ns(0);
    }
    Attendance& attendance;
    Agenda agenda;
  };

  Serving() : Serving(Attendance::Parts{}.missed_after_ns) {}
  explicit Serving(std::uint64_t missed_after_ns)
      : attendance({.handler = &handler,
                    .grant = [this] { ++granted; },
                    .needs_agent = [this] { return needs_agent.load(); },
                    .rouse =
                        [this] {
                          ++roused;
                          bell->ask_for_look();
                        },
                    .after_serving = [this] { after_serving(); },
                    .now_ns = [this] { return monotonic_ns() + ahead_ns; },
                    .missed_after_ns = missed_after_ns}),
        sources(attendance),
        chores(attendance) {
    Result<std::unique_ptr<NodeSegment>> made = NodeSegment::create({.ranks = 1, .segment_bytes = 64 << 20});
    EXPECT_TRUE(made.is_ok()) << made.take_status().text();
    segment = std::move(made.value());
    transport = std::make_unique<ShmTransport>(*segment, ShmTransport::Options{.rank = 0});
    bell = std::make_unique<RankBell>(segment->rank(0).doorbell, transport->wake_name(0));
  }
  void start() {
    sources.add(network);
    ASSERT_TRUE(bell->add_network(sources).is_ok());
    Result<std::unique_ptr<Agent>> started =
        Agent::start({.mode = AgentMode::sleep, .nice = 0, .cpus = {}, .start_cpus = {}}, network, handler, *bell,
                     chores, attendance.serving());
    ASSERT_TRUE(started.is_ok()) << started.take_status().text();
    agent = std::move(started.value());
  }
  // The agent may be in a turn at the moment.
  Code try_to_begin() {
    Code code = Code::pending;
    while (code == Code::pending) code = attendance.begin();
    return code;
  }
  void begin() { ASSERT_EQ(try_to_begin(), Code::ok); }
  bool would_wake_the_agent() const {
    pollfd waited{.fd = attendance.request_descriptor(), .events = POLLIN, .revents = 0};
    return poll(&waited, 1, 0) == 1;
  }

  std::function<void()> after_serving = [] {};
  NoRequests handler;
  EventNetwork network;
  std::atomic<bool> needs_agent{false};
  std::atomic<int> granted{0};
  std::atomic<int> roused{0};
  std::atomic<std::uint64_t> ahead_ns{0};
  Attendance attendance;
  WakeSources sources;
  Chores chores;
  std::unique_ptr<NodeSegment> segment;
  std::unique_ptr<ShmTransport> transport;
  std::unique_ptr<RankBell> bell;
  std::unique_ptr<Agent> agent;
};

TEST_F(Serving, is_the_agents_where_nobody_attends) {
  start();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    network.bring_request();
    ASSERT_TRUE(network.await_served(i));
  }
  EXPECT_FALSE(attendance.attend());
}

TEST_F(Serving, cannot_be_taken_over_without_a_network) { EXPECT_EQ(attendance.begin(), Code::unsupported); }

// Without an agent, which might miss the thread in between.
TEST_F(Serving, cannot_be_taken_over_by_two_threads) {
  sources.add(network);
  begin();
  EXPECT_EQ(attendance.begin(), Code::pending);
  attendance.end();
  begin();
}

TEST_F(Serving, is_done_by_whoever_attends) {
  start();
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    network.bring_request();
    // It may be missed, where the processor is another's.
    while (network.served() < i) {
      if (!attendance.attend()) begin();
    }
  }
}

TEST_F(Serving, is_the_agents_again_from_the_end_on) {
  start();
  for (std::uint64_t i = 0; i < 200; ++i) {
    begin();
    if (i % 2 == 0) network.bring_request();
    attendance.end();
    if (i % 2 == 1) network.bring_request();
    ASSERT_TRUE(network.await_served(i + 1));
  }
}

TEST_F(Serving, is_the_agents_again_where_a_thread_has_gone_astray) {
  start();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    begin();
    network.bring_request();
    ASSERT_TRUE(network.await_served(i));
  }
}

TEST_F(Serving, is_the_agents_alone_once_it_was_shut) {
  start();
  begin();
  attendance.shut();
  EXPECT_FALSE(attendance.attend());
  EXPECT_EQ(try_to_begin(), Code::unsupported);
  network.bring_request();
  EXPECT_TRUE(network.await_served(1));
}

// Without an agent: what it would be woken by. A thread is missed after an hour, which only the test's clock sees pass.
struct ServingOfTheLate : Serving {
  static constexpr std::uint64_t a_while_ns = 3'600'000'000'000;
  ServingOfTheLate() : Serving(a_while_ns) {}
};

TEST_F(ServingOfTheLate, wakes_no_agent_while_somebody_attends) {
  sources.add(network);
  network.bring_request();
  EXPECT_TRUE(would_wake_the_agent());
  begin();
  EXPECT_FALSE(would_wake_the_agent());
  EXPECT_TRUE(attendance.arm_requests()) << "though there is something: somebody looks";
  EXPECT_TRUE(attendance.attend());
  network.bring_request();
  EXPECT_FALSE(would_wake_the_agent());
  attendance.end();
  EXPECT_EQ(network.served(), 2U);
  EXPECT_FALSE(would_wake_the_agent());
  network.bring_request();
  EXPECT_TRUE(would_wake_the_agent());
  EXPECT_FALSE(attendance.arm_requests());
}

// What is done then may take long, and the agent serves meanwhile.
TEST_F(ServingOfTheLate, has_what_came_looked_after_by_whoever_served_without_the_serving_mutex) {
  sources.add(network);
  begin();
  int looked = 0;
  after_serving = [&] {
    EXPECT_EQ(network.served(), 1u);
    std::thread other([this] {
      const std::unique_lock lock(attendance.serving(), std::try_to_lock);
      EXPECT_TRUE(lock.owns_lock());
    });
    other.join();
    ++looked;
  };
  network.bring_request();
  EXPECT_TRUE(attendance.attend());
  EXPECT_EQ(looked, 1);
  attendance.end();
  EXPECT_EQ(looked, 2) << "the last look may have served, too";
}

TEST_F(ServingOfTheLate, is_given_back_when_nobody_has_looked_for_a_while_and_not_before) {
  sources.add(network);
  const auto look = [this] {
    const std::lock_guard lock(attendance.serving());
    attendance.look();
  };
  begin();
  ahead_ns += a_while_ns;
  EXPECT_TRUE(attendance.attend());
  network.bring_request();
  look();
  EXPECT_FALSE(would_wake_the_agent());
  EXPECT_TRUE(attendance.attend());
  ahead_ns += a_while_ns;
  network.bring_request();
  look();
  EXPECT_TRUE(would_wake_the_agent());
  EXPECT_EQ(roused, 0);
  EXPECT_FALSE(attendance.attend());
}

TEST_F(ServingOfTheLate, has_the_agent_roused_where_a_thread_that_went_astray_left_something_unfinished) {
  sources.add(network);
  begin();
  network.has_unfinished = true;
  ahead_ns += a_while_ns;
  const std::lock_guard lock(attendance.serving());
  attendance.look();
  EXPECT_EQ(roused, 1);
}

TEST_F(ServingOfTheLate, grants_what_waited_and_has_the_agent_roused_for_what_waits_since) {
  sources.add(network);
  begin();
  EXPECT_TRUE(attendance.attend());
  EXPECT_EQ(granted, 0);
  network.on_serving = [this] { needs_agent = true; };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(attendance.attend());
  EXPECT_EQ(granted, 5);
  EXPECT_EQ(roused, 1);
  needs_agent = false;  // the agent has looked, and nobody has attended since
  EXPECT_TRUE(attendance.attend());
  EXPECT_EQ(roused, 2);
  attendance.end();
  EXPECT_EQ(roused, 3);
}

TEST_F(ServingOfTheLate, is_neither_taken_over_nor_done_while_the_agent_serves) {
  sources.add(network);
  network.bring_request();
  Code begun = Code::ok;
  {
    const std::lock_guard lock(attendance.serving());
    std::thread([&] { begun = attendance.begin(); }).join();
  }
  EXPECT_EQ(begun, Code::pending);
  begin();
  std::atomic<bool> is_taken{false};
  std::atomic<bool> is_over{false};
  std::thread agent_stand_in([&] {
    const std::lock_guard lock(attendance.serving());
    is_taken = true;
    is_taken.notify_one();
    is_over.wait(false);
  });
  is_taken.wait(false);
  EXPECT_TRUE(attendance.attend()) << "it attends on";
  EXPECT_EQ(network.served(), 0U);
  is_over = true;
  is_over.notify_one();
  agent_stand_in.join();
  EXPECT_TRUE(attendance.attend());
  EXPECT_EQ(network.served(), 1U);
}

TEST_F(ServingOfTheLate, is_ended_by_the_thread_that_attends_only) {
  sources.add(network);
  begin();
  std::thread other([this] {
    EXPECT_FALSE(attendance.attend());
    attendance.end();
  });
  other.join();
  EXPECT_TRUE(attendance.attend());
}

// Threads that begin, look, pause for longer than they may, and end, as it comes.
TEST_F(Serving, loses_nothing_whoever_does_it) {
  start();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> guests;
  for (unsigned guest = 0; guest < 2; ++guest) {
    guests.emplace_back([&, guest] {
      std::uint64_t state = guest + 1;
      while (!is_over) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const unsigned choice = static_cast<unsigned>(state >> 33) % 64;
        if (choice < 4) {
          (void)attendance.begin();
        } else if (choice < 6) {
          attendance.end();
        } else if (choice < 7) {
          std::this_thread::sleep_for(std::chrono::microseconds(500 * (choice % 4)));
        } else if (!attendance.attend()) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    network.bring_request();
    if (!network.await_served(i)) {
      ADD_FAILURE() << "request " << i << " was not served";
      break;
    }
  }
  is_over = true;
  for (std::thread& guest : guests) guest.join();
}

}  // namespace
}  // namespace farsum::test
