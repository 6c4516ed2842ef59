#include "window/notifications.hpp"

#include <atomic>

#include <fmt/format.h>

namespace farsum {

Status Notifications::wait(std::uint32_t slot, std::uint64_t at_least) {
  if (slot >= needs_.slots) {
    return {Code::range,
            fmt::format("farsum_notify_wait: window {}: slot {} was asked for, but the window has {} (0 to {})",
                        needs_.window, slot, needs_.slots, needs_.slots - 1)};
  }
  const std::atomic<std::uint64_t>& value = needs_.shared[needs_.my_rank].notifications()[slot];
  // Acquire pairs with the release of whoever raised it: the data is here.
  const auto arrived = [&] { return value.load(std::memory_order_acquire) >= at_least; };
  if (arrived()) return {};
  return needs_.waiter.wait(needs_.waiter.own_events(), arrived, "farsum_notify_wait");
}

Status Notifications::value(std::uint32_t slot, std::uint64_t& value) const {
  if (slot >= needs_.slots) {
    return {Code::range, fmt::format("farsum_notify_value: window {}: slot {} was asked for, but the window has {}",
                                     needs_.window, slot, needs_.slots)};
  }
  value = needs_.shared[needs_.my_rank].notifications()[slot].load(std::memory_order_acquire);
  return {};
}

}  // namespace farsum
