#include "runtime/held_mutexes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace farsum {

HeldMutexes::HeldMutexes(std::vector<std::uint32_t> counts) : counts_(std::move(counts)) {
  std::uint64_t total = 0;
  first_.reserve(counts_.size());
  for (const std::uint32_t count : counts_) {
    first_.push_back(total);
    total += count;
  }
  states_ = std::vector<std::atomic<State>>(total);
}

std::optional<HeldMutexes::Name> HeldMutexes::first_in_use() const {
  const auto held = std::find_if(states_.begin(), states_.end(), [](const auto& state) {
    return state.load(std::memory_order_relaxed) != State::free;
  });
  if (held == states_.end()) return std::nullopt;
  const auto at = static_cast<std::uint64_t>(held - states_.begin());
  const auto after = std::upper_bound(first_.begin(), first_.end(), at);
  return Name{static_cast<std::uint32_t>(after - first_.begin() - 1),
              static_cast<std::uint32_t>(at - *std::prev(after))};
}

}  // namespace farsum
