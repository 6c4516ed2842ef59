// What an executor may use of a window, where there is no window: a scripted network beneath, and one neighbour.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "window/executor.hpp"
#include "window/scripted_parts.hpp"

namespace farsum {

// Of three ranks the first, `here`, is of this node.
struct ExecutorParts : ScriptedParts {
  static constexpr WindowSharedShape shape{.ranks = 3, .notification_slots = 2, .most_regions = 1, .locks = 1};

  ExecutorServices services(std::uint32_t promises = 0) {
    return {.window = farsum::window,
            .promises = promises,
            .ranks = ranks,
            .kernels = ops::kernels_for_this_machine(),
            .views = views.data(),
            .order = order,
            .messages = messages,
            .locks = locks,
            .owner = owner,
            .waiter = waiter,
            .hearing = &hearing,
            .counters = counters,
            .notifications = notifications,
            .texts = texts};
  }
  std::uint64_t operations_by(Path path) const {
    return counters.operations[static_cast<std::size_t>(path)].load(std::memory_order_relaxed);
  }
  std::uint64_t bytes_by(Path path) const {
    return counters.bytes[static_cast<std::size_t>(path)].load(std::memory_order_relaxed);
  }

  OrderMarks order{states.data(), 3};
  OwnerPath owner{messages, locks};
  Hearing hearing;
  PathCounters counters;
  alignas(2 * cache_line_bytes) std::array<std::byte, 4096> part_here{};
  std::array<RankWindow, 3> shared = {RankWindow(part_here.data(), shape), RankWindow(), RankWindow()};
  std::function<void(Rank)> wake_rank = [](Rank) {};
  Notifications notifications{{.window = farsum::window,
                               .my_rank = here,
                               .slots = 2,
                               .ranks = ranks,
                               .shared = shared,
                               .wake_rank = wake_rank,
                               .waiter = waiter}};
};

}  // namespace farsum
