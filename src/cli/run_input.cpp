// The two halves of InputForwarder: one chunk is read, then written, then the next is read.
#include "cli/run_input.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace farsum::cli {

InputForwarder::InputForwarder(EventLoop& loop, UniqueFd to_rank) : loop_(loop), to_rank_(std::move(to_rank)) {
  if (!to_rank_.valid()) return;
  fcntl(to_rank_.get(), F_SETFL, O_NONBLOCK);
  foreground_may_have_changed();
}

void InputForwarder::foreground_may_have_changed() {
  if (!to_rank_.valid() || !waiting_.empty()) return;
  const bool may_read = tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (!may_read) {
    loop_.unwatch(STDIN_FILENO);
  } else if (!loop_.watches(STDIN_FILENO) && !loop_.watch(STDIN_FILENO, EPOLLIN, [this] { read_terminal(); })) {
    stop();
  }
}

void InputForwarder::read_terminal() {
  // The shell may have put us into the background since; reading would then stop this process.
  if (tcgetpgrp(STDIN_FILENO) != getpgrp()) return loop_.unwatch(STDIN_FILENO);
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
    foreground_may_have_changed();
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
