#include "os/event_gate.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace farsum::os {
namespace {

constexpr std::uint64_t minute_ns = 60'000'000'000;
constexpr std::uint64_t shortly_ns = 1'000'000;

struct Gate : testing::Test {
  Gate() : events(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    Result<EventGate> made = EventGate::before(events);
    EXPECT_TRUE(made.is_ok()) << made.take_status().text();
    gate = std::move(made.value());
  }
  ~Gate() override { close(events); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void bring_event() const { EXPECT_EQ(eventfd_write(events, 1), 0); }
  bool is_readable(int within_ms = 0) const {
    pollfd waited{.fd = gate.descriptor(), .events = POLLIN, .revents = 0};
    return poll(&waited, 1, within_ms) == 1;
  }

  int events;
  EventGate gate;
};

TEST_F(Gate, is_readable_as_what_is_behind_it) {
  EXPECT_FALSE(is_readable());
  bring_event();
  EXPECT_TRUE(is_readable());
  eventfd_t count = 0;
  EXPECT_EQ(eventfd_read(events, &count), 0);
  EXPECT_FALSE(is_readable());
}

TEST_F(Gate, that_is_closed_hides_what_is_behind_it_until_it_is_opened) {
  bring_event();
  gate.close_for(minute_ns);
  EXPECT_FALSE(is_readable());
  bring_event();
  EXPECT_FALSE(is_readable());
  gate.open();
  EXPECT_TRUE(is_readable());
}

TEST_F(Gate, is_readable_when_it_was_closed_for_long_enough_and_not_once_it_is_opened) {
  gate.close_for(shortly_ns);
  EXPECT_TRUE(is_readable(60'000));
  gate.open();
  EXPECT_FALSE(is_readable());
}

TEST_F(Gate, that_is_closed_anew_stays_closed) {
  gate.close_for(shortly_ns);
  EXPECT_TRUE(is_readable(60'000));
  gate.close_for(minute_ns);
  EXPECT_FALSE(is_readable());
  bring_event();
  EXPECT_FALSE(is_readable());
}

TEST_F(Gate, wakes_who_sleeps_on_it_when_it_is_opened) {
  gate.close_for(minute_ns);
  bring_event();
  std::thread sleeper([this] { EXPECT_TRUE(is_readable(60'000)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // most likely it sleeps
  gate.open();
  sleeper.join();
}

// As a network's descriptor is one.
TEST_F(Gate, is_closed_before_an_epoll_descriptor_too) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, events, &event), 0);
  Result<EventGate> made = EventGate::before(set);
  ASSERT_TRUE(made.is_ok());
  gate = std::move(made.value());
  gate.close_for(minute_ns);
  bring_event();
  EXPECT_FALSE(is_readable());
  gate.open();
  EXPECT_TRUE(is_readable());
  gate = EventGate();
  close(set);
}

TEST(EventGate, is_refused_before_what_is_no_descriptor) {
  const Result<EventGate> made = EventGate::before(-1);
  EXPECT_FALSE(made.is_ok());
  EXPECT_LT(EventGate().descriptor(), 0);
}

}  // namespace
}  // namespace farsum::os
