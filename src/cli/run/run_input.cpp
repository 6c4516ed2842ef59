// The two halves of InputForwarder: one chunk is read, then written, then the next is read.
#include "cli/run/run_input.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace farsum::cli {

InputForwarder::InputForwarder(EventLoop& loop, UniqueFd to_rank) : loop_(loop), to_rank_(std::move(to_rank)) {
  if (!to_rank_.valid()) return;
  fcntl(to_rank_.get(), F_SETFL, O_NONBLOCK);
  watch_terminal();
}

// Edge-triggered: input that is not ours, because a shell is in the foreground, wakes this process once and not for
// ever. Watching anew reports input that is there already.
void InputForwarder::watch_terminal() {
  if (!to_rank_.valid() || !waiting_.empty()) return;
  loop_.unwatch(STDIN_FILENO);
  if (!loop_.watch(STDIN_FILENO, EPOLLIN | EPOLLET, [this] { read_terminal(); })) stop();
}

void InputForwarder::read_terminal() {
  // In the background reading would stop this process.
  if (tcgetpgrp(STDIN_FILENO) != getpgrp()) return;
  std::array<char, 4096> bytes;
  const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) return stop();
  waiting_.assign(bytes.data(), static_cast<std::size_t>(got));
  loop_.unwatch(STDIN_FILENO);
  write_rank();
}

void InputForwarder::write_rank() {
  const ssize_t wrote = ::write(to_rank_.get(), waiting_.data(), waiting_.size());
  if (wrote < 0 && errno != EAGAIN && errno != EINTR) return stop();
  if (wrote > 0) waiting_.erase(0, static_cast<std::size_t>(wrote));
  if (waiting_.empty()) {
    loop_.unwatch(to_rank_.get());
    watch_terminal();
  } else if (!loop_.watches(to_rank_.get()) && !loop_.watch(to_rank_.get(), EPOLLOUT, [this] { write_rank(); })) {
    stop();
  }
}

void InputForwarder::stop() {
  if (!to_rank_.valid()) return;
  loop_.unwatch(STDIN_FILENO);
  loop_.unwatch(to_rank_.get());
  to_rank_.reset();
}

}  // namespace farsum::cli
