#include "os/event_gate.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace farsum::os {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;

bool add(int gate, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return epoll_ctl(gate, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

Result<EventGate> EventGate::before(int descriptor) {
  EventGate made;
  made.behind_ = descriptor;
  made.gate_ = epoll_create1(EPOLL_CLOEXEC);
  made.timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (made.gate_ < 0 || made.timer_ < 0 || !add(made.gate_, made.timer_) || !add(made.gate_, descriptor)) {
    return Status(Code::system,
                  fmt::format("cannot sleep on a descriptor by an epoll of its own: {}", std::strerror(errno)));
  }
  return made;
}

EventGate::EventGate(EventGate&& other) noexcept { *this = std::move(other); }

EventGate& EventGate::operator=(EventGate&& other) noexcept {
  std::swap(gate_, other.gate_);
  std::swap(timer_, other.timer_);
  std::swap(behind_, other.behind_);
  std::swap(is_closed_, other.is_closed_);
  return *this;
}

EventGate::~EventGate() {
  if (timer_ >= 0) ::close(timer_);
  if (gate_ >= 0) ::close(gate_);
}

void EventGate::close_for(std::uint64_t duration_ns) {
  set_timer(duration_ns);
  if (!std::exchange(is_closed_, true)) let_through(0);
}

void EventGate::open() {
  if (!std::exchange(is_closed_, false)) return;
  let_through(EPOLLIN);
  set_timer(0);
}

// Nothing is allocated for it, so that it does not fail. Errors and hang-ups come through a closed gate, too.
void EventGate::let_through(unsigned events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = behind_;
  epoll_ctl(gate_, EPOLL_CTL_MOD, behind_, &event);
}

// A timer that has run out is readable no more.
void EventGate::set_timer(std::uint64_t duration_ns) const {
  itimerspec until{};
  until.it_value = {.tv_sec = static_cast<time_t>(duration_ns / ns_per_second),
                    .tv_nsec = static_cast<long>(duration_ns % ns_per_second)};
  timerfd_settime(timer_, 0, &until, nullptr);
}

}  // namespace farsum::os
