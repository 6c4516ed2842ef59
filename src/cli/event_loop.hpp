// Waits for descriptors with epoll and calls the handler of each that is ready. One thread; it never polls on a timer
// of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "cli/unique_fd.hpp"

namespace farsum::cli {

using Milliseconds = std::chrono::milliseconds;

class EventLoop {
 public:
  using Handler = std::function<void()>;

  EventLoop();

  // Calls `handler` whenever `fd` has one of `events` (EPOLLIN, EPOLLOUT), hang-ups included. False when the descriptor
  // cannot be waited for, as a regular file cannot.
  [[nodiscard]] bool watch(int fd, std::uint32_t events, Handler handler);
  // Forgets `fd`; a handler may unwatch any descriptor, its own included. Unknown descriptors are passed over.
  void unwatch(int fd);
  [[nodiscard]] bool watches(int fd) const { return watched_.contains(fd); }

  // Sleeps until a descriptor is ready or `limit` has passed (no limit: for ever), and calls the handlers.
  void wait(std::optional<Milliseconds> limit);

 private:
  struct Watched {
    std::uint32_t generation;
    Handler handler;
  };

  UniqueFd epoll_;
  std::uint32_t next_generation_ = 0;
  std::unordered_map<int, Watched> watched_;
};

}  // namespace farsum::cli
