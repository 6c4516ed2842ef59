#include "agent/rank_bell.hpp"

#include <poll.h>
#include <time.h>

#include <utility>

namespace farsum {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;
// A deadline may move forward while the agent sleeps, by what other threads send; nobody wakes it for that.
constexpr std::uint64_t longest_watch_ns = 100'000'000;

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * ns_per_second + static_cast<std::uint64_t>(now.tv_nsec);
}

timespec to_timespec(std::uint64_t duration_ns) {
  return {.tv_sec = static_cast<time_t>(duration_ns / ns_per_second),
          .tv_nsec = static_cast<long>(duration_ns % ns_per_second)};
}

}  // namespace

bool RankBell::sleep(std::uint64_t timeout_ns) {
  // Acquire pairs with the store in add_network: the socket is there.
  if (NetworkWake* const network = network_.load(std::memory_order_acquire); network != nullptr)
    return sleep_on_descriptors(*network, timeout_ns);
  // seq_cst, after the bell was armed: see Doorbell::sleep.
  return doorbell_.sleep(timeout_ns, [this] { return network_.load(std::memory_order_seq_cst) == nullptr; });
}

bool RankBell::sleep_on_descriptors(NetworkWake& network, std::uint64_t timeout_ns) {
  // Relaxed: looked at again once the bell is armed.
  const bool watching = watching_.load(std::memory_order_relaxed);
  if (!network.arm_requests() || !network.arm_card()) return true;
  if (watching && !network.arm_replies()) {
    end_watch();
    return true;
  }
  const Limit limit = limit_of(network, watching, timeout_ns);
  const auto may_sleep = [&] {
    return watching_.load(std::memory_order_seq_cst) == watching && !look_is_due_.load(std::memory_order_seq_cst);
  };
  return doorbell_.sleep_on_descriptor(may_sleep, [&] { return wait_for_descriptors(network, watching, limit); });
}

RankBell::Limit RankBell::limit_of(NetworkWake& network, bool watching, std::uint64_t timeout_ns) const {
  if (!watching) return {timeout_ns, false};
  std::uint64_t left_ns = longest_watch_ns;
  if (const std::uint64_t deadline_ns = network.next_deadline_ns(); deadline_ns != NetworkWake::never) {
    const std::uint64_t now = now_ns();
    // One nanosecond at least, for 0 means for ever.
    const std::uint64_t until_ns = deadline_ns > now ? deadline_ns - now : 1;
    if (until_ns < left_ns) left_ns = until_ns;
  }
  if (timeout_ns != 0 && timeout_ns < left_ns) return {timeout_ns, false};
  return {left_ns, true};
}

bool RankBell::wait_for_descriptors(NetworkWake& network, bool watching, const Limit& limit) {
  enum : std::size_t { bell, requests, replies, card, count };
  pollfd waited[count] = {{.fd = socket_.descriptor(), .events = POLLIN, .revents = 0},
                          {.fd = network.request_descriptor(), .events = POLLIN, .revents = 0},
                          // poll passes over what is negative.
                          {.fd = watching ? network.reply_descriptor() : -1, .events = POLLIN, .revents = 0},
                          {.fd = network.card_descriptor(), .events = POLLIN, .revents = 0}};
  const timespec timeout = to_timespec(limit.timeout_ns);
  const int ready = ppoll(waited, count, limit.timeout_ns != 0 ? &timeout : nullptr, nullptr);
  if (ready == 0) {
    if (limit.of_watch) end_watch();
    return limit.of_watch;
  }
  // A failure is as good as something to do: the agent looks, and comes back.
  if (ready < 0 || waited[bell].revents != 0) socket_.drain();
  if (ready > 0 && waited[replies].revents != 0) end_watch();
  return true;
}

void RankBell::pass() {
  // Relaxed: a miss is caught at the next pass.
  if (watching_.load(std::memory_order_relaxed)) end_watch();
}

// Whoever asks for a watch from here on gets a new one.
void RankBell::end_watch() {
  // Acquire-release: what was sent before the watch was asked for is known to the chores.
  watching_.exchange(false, std::memory_order_acq_rel);
  watch_ended_ = true;
}

bool RankBell::watch_has_ended() {
  // Relaxed: a miss is caught before the next sleep. Acquire-release: see end_watch.
  if (look_is_due_.load(std::memory_order_relaxed) && look_is_due_.exchange(false, std::memory_order_acq_rel))
    end_watch();
  return std::exchange(watch_ended_, false);
}

void RankBell::rouse() {
  doorbell_.rouse([this] { socket_.wake(); });
}

void RankBell::wake() {
  doorbell_.wake([this] { socket_.wake(); });
}

Status RankBell::add_network(NetworkWake& network) {
  Result<os::WakeSocket> socket = os::WakeSocket::open(name_);
  if (!socket.is_ok()) return socket.take_status();
  socket_ = std::move(socket.value());
  network_.store(&network, std::memory_order_seq_cst);
  rouse();
  return {};
}

void RankBell::watch_replies() {
  if (network_.load(std::memory_order_acquire) == nullptr) return;
  // It is not roused again while somebody watches: who asked first has roused it.
  if (!watching_.exchange(true, std::memory_order_seq_cst)) rouse();
}

void RankBell::ask_for_look() {
  if (network_.load(std::memory_order_acquire) == nullptr) return;
  // It is not roused again before it has looked: who asked first has roused it.
  if (!look_is_due_.exchange(true, std::memory_order_seq_cst)) rouse();
}

}  // namespace farsum
