#include "progress/rank_bell.hpp"

#include <poll.h>
#include <time.h>

#include <mutex>
#include <utility>

#include "base/clock.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;
// A deadline may move forward while the agent sleeps, by what other threads send; nobody wakes it for that.
constexpr std::uint64_t longest_watch_ns = 100'000'000;

timespec to_timespec(std::uint64_t duration_ns) {
  return {.tv_sec = static_cast<time_t>(duration_ns / ns_per_second),
          .tv_nsec = static_cast<long>(duration_ns % ns_per_second)};
}

// How long to sleep at most, and whose that time is.
struct Limit {
  std::uint64_t timeout_ns = 0;  // 0: for ever
  WaitEnd end = WaitEnd::time_is_up;
};

Limit limit_of(NetworkWake& network, bool watches, std::uint64_t timeout_ns) {
  if (!watches) return {timeout_ns, WaitEnd::time_is_up};
  std::uint64_t left_ns = longest_watch_ns;
  if (const std::uint64_t deadline_ns = network.next_deadline_ns(); deadline_ns != NetworkWake::never) {
    const std::uint64_t now = monotonic_ns();
    // One nanosecond at least, for 0 means for ever.
    const std::uint64_t until_ns = deadline_ns > now ? deadline_ns - now : 1;
    if (until_ns < left_ns) left_ns = until_ns;
  }
  if (timeout_ns != 0 && timeout_ns < left_ns) return {timeout_ns, WaitEnd::time_is_up};
  return {left_ns, WaitEnd::watch_is_over};
}

}  // namespace

WaitEnd RankBell::Descriptors::wait(bool watches, std::uint64_t timeout_ns) {
  enum : std::size_t { bell, requests, replies, card, count };
  pollfd waited[count] = {{.fd = socket.descriptor(), .events = POLLIN, .revents = 0},
                          {.fd = network->request_descriptor(), .events = POLLIN, .revents = 0},
                          // poll passes over what is negative.
                          {.fd = watches ? network->reply_descriptor() : -1, .events = POLLIN, .revents = 0},
                          {.fd = network->card_descriptor(), .events = POLLIN, .revents = 0}};
  const Limit limit = limit_of(*network, watches, timeout_ns);
  const timespec timeout = to_timespec(limit.timeout_ns);
  const int ready = ppoll(waited, count, limit.timeout_ns != 0 ? &timeout : nullptr, nullptr);
  if (ready == 0) return limit.end;
  if (ready < 0 || waited[bell].revents != 0) socket.drain();
  return ready > 0 && waited[replies].revents != 0 ? WaitEnd::watch_is_over : WaitEnd::something;
}

Status RankBell::add_network(NetworkWake& network) {
  const std::lock_guard lock(adding_);
  if (descriptors_.network == nullptr) {
    Result<os::WakeSocket> socket = os::WakeSocket::open(name_);
    if (!socket.is_ok()) return socket.take_status();
    descriptors_.socket = std::move(socket.value());
    descriptors_.network = &network;
  }
  bell_.add_network();
  return {};
}

}  // namespace farsum
