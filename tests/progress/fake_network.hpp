// A network as a bell knows it: two descriptors, and what it says when asked.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "progress/rank_bell.hpp"

namespace farsum::test {

// Nobody else's name: tests run at once.
inline os::WakeName new_name() {
  os::WakeName name;
  EXPECT_EQ(getrandom(&name.tag, sizeof name.tag, 0), static_cast<ssize_t>(sizeof name.tag));
  return name;
}

class FakeNetwork final : public NetworkWake {
 public:
  FakeNetwork() : requests_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), replies_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~FakeNetwork() override {
    close(requests_);
    close(replies_);
  }
  FakeNetwork(const FakeNetwork&) = delete;
  FakeNetwork& operator=(const FakeNetwork&) = delete;

  int request_descriptor() override { return requests_; }
  bool arm_requests() override { return !has_requests.load(); }
  int reply_descriptor() override { return replies_; }
  bool arm_replies() override { return !has_replies.load(); }
  std::uint64_t next_deadline_ns() override { return deadline_ns.load(); }

  void bring_request() const { add(requests_); }
  void bring_reply() const { add(replies_); }
  void take_requests() const { take(requests_); }
  void take_replies() const { take(replies_); }

  std::atomic<bool> has_requests{false};
  std::atomic<bool> has_replies{false};
  std::atomic<std::uint64_t> deadline_ns{never};

 private:
  static void add(int descriptor) { EXPECT_EQ(eventfd_write(descriptor, 1), 0); }
  static void take(int descriptor) {
    eventfd_t count = 0;
    (void)eventfd_read(descriptor, &count);
  }

  int requests_;
  int replies_;
};

}  // namespace farsum::test
