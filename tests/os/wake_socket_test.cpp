#include "os/wake_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>

#include <utility>
#include <vector>

namespace farsum::os {
namespace {

// Nobody else's name: tests run at once.
std::uint64_t new_tag() {
  std::uint64_t tag = 0;
  EXPECT_EQ(getrandom(&tag, sizeof tag, 0), static_cast<ssize_t>(sizeof tag));
  return tag;
}

bool is_readable(const WakeSocket& socket) {
  pollfd waited{.fd = socket.descriptor(), .events = POLLIN, .revents = 0};
  return poll(&waited, 1, 0) == 1;
}

WakeSocket opened(const WakeName& name) {
  Result<WakeSocket> socket = WakeSocket::open(name);
  EXPECT_TRUE(socket.is_ok()) << socket.take_status().text();
  return std::move(socket.value());
}

TEST(WakeSocket, is_readable_from_a_wake_until_it_is_drained) {
  const WakeName name{new_tag(), 3};
  const WakeSocket socket = opened(name);
  const WakeSender sender;
  EXPECT_FALSE(is_readable(socket));
  sender.wake(name);
  sender.wake(name);
  EXPECT_TRUE(is_readable(socket));
  socket.drain();
  EXPECT_FALSE(is_readable(socket));
  socket.wake();
  EXPECT_TRUE(is_readable(socket));
}

TEST(WakeSocket, takes_more_wakes_than_it_has_room_for) {
  const WakeName name{new_tag(), 0};
  const WakeSocket socket = opened(name);
  const WakeSender sender;
  for (int i = 0; i < 1000; ++i) sender.wake(name);
  for (int i = 0; i < 1000; ++i) socket.wake();
  EXPECT_TRUE(is_readable(socket));
}

TEST(WakeSocket, is_woken_by_its_own_name_only) {
  const std::uint64_t tag = new_tag();
  const WakeSocket one = opened({tag, 1});
  const WakeSocket eleven = opened({tag, 11});
  const WakeSocket of_another_job = opened({tag + 1, 1});
  const WakeSender sender;
  sender.wake({tag, 11});
  EXPECT_FALSE(is_readable(one));
  EXPECT_TRUE(is_readable(eleven));
  EXPECT_FALSE(is_readable(of_another_job));
}

TEST(WakeSocket, of_somebody_gone_is_woken_in_vain) {
  const WakeName name{new_tag(), 0};
  const WakeSender sender;
  sender.wake(name);
  { const WakeSocket socket = opened(name); }
  sender.wake(name);
  const WakeSocket next = opened(name);
  EXPECT_FALSE(is_readable(next));
}

TEST(WakeSocket, says_when_its_name_is_taken) {
  const WakeName name{new_tag(), 0};
  const WakeSocket socket = opened(name);
  Result<WakeSocket> second = WakeSocket::open(name);
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.take_status().code(), Code::system);
}

TEST(WakeSocket, is_closed_in_programs_that_this_one_starts) {
  const WakeSocket socket = opened({new_tag(), 0});
  EXPECT_NE(fcntl(socket.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

// What one socket may have sent and nobody taken yet is some hundred bytes: then another is used for each.
TEST(WakeSender, wakes_each_of_many_who_do_not_drain) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::uint64_t tag = new_tag();
  const std::uint32_t count = static_cast<std::uint32_t>(std::min<rlim_t>(limit.rlim_cur - 64, 1023));
  std::vector<WakeSocket> sockets;
  for (std::uint32_t i = 0; i < count; ++i) sockets.push_back(opened({tag, i}));
  const WakeSender sender;
  for (std::uint32_t i = 0; i < count; ++i) sender.wake({tag, i});
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_TRUE(is_readable(sockets[i])) << i;
}

}  // namespace
}  // namespace farsum::os
