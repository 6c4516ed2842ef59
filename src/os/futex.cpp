// The futex system call. Not the private kind: the words lie in memory that several processes map.
#include "os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace farsum {

namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;

timespec to_timespec(std::uint64_t duration_ns) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(duration_ns / ns_per_second);
  time.tv_nsec = static_cast<long>(duration_ns % ns_per_second);
  return time;
}

}  // namespace

WaitResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) {
  const timespec timeout = to_timespec(timeout_ns);
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout_ns == 0 ? nullptr : &timeout, nullptr, 0);
  if (result == 0) {
    return WaitResult::woken;
  }
  switch (errno) {
    case EAGAIN:
      return WaitResult::changed;
    case ETIMEDOUT:
      return WaitResult::timed_out;
    default:
      return WaitResult::woken;
  }
}

int futex_wake(std::atomic<std::uint32_t>& word, int count) {
  const long woken = syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
  return woken < 0 ? 0 : static_cast<int>(woken);
}

void sleep_ns(std::uint64_t duration_ns) {
  const timespec duration = to_timespec(duration_ns);
  nanosleep(&duration, nullptr);
}

}  // namespace farsum
