// The epoll calls behind EventLoop.
#include "cli/event_loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <limits>

namespace farsum::cli {

namespace {

std::uint64_t token(int fd, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32) | static_cast<std::uint32_t>(fd);
}

int epoll_limit(std::optional<Milliseconds> limit) {
  if (!limit) return -1;
  const auto longest = Milliseconds{std::numeric_limits<int>::max()};
  return static_cast<int>(std::clamp(*limit, Milliseconds{0}, longest).count());
}

}  // namespace

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
  const std::uint32_t generation = next_generation_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token(fd, generation);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  watched_[fd] = Watched{generation, std::move(handler)};
  return true;
}

void EventLoop::unwatch(int fd) {
  if (watched_.erase(fd) == 0) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::wait(std::optional<Milliseconds> limit) {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), epoll_limit(limit));
  for (int i = 0; i < count; ++i) {
    const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
    const auto found = watched_.find(static_cast<int>(static_cast<std::uint32_t>(data)));
    // An earlier handler of this batch may have closed the descriptor, or another may carry its number now.
    if (found == watched_.end() || found->second.generation != static_cast<std::uint32_t>(data >> 32)) continue;
    const Handler handler = found->second.handler;
    handler();
  }
}

}  // namespace farsum::cli
