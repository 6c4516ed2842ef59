// How long a thread looks for a reply from afar before it sleeps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace farsum {

// At least twice as long as a wake-up costs, for the owner's agent wakes up first. Where replies usually take longer,
// as on a machine that wakes slowly, twice as long as they do: who sleeps a moment before the reply pays for two
// wake-ups more. What usually takes longer than is worth looking for is not looked for. Threads: any.
class ReplyLook {
 public:
  explicit ReplyLook(std::uint64_t wake_up_ns) : least_ns_(2 * wake_up_ns), most_ns_(8 * wake_up_ns) {}

  std::uint64_t longest_ns() const {
    const std::uint64_t usual_ns = usual_ns_.load(std::memory_order_relaxed);
    return usual_ns > most_ns_ ? least_ns_ : std::clamp(2 * usual_ns, least_ns_, most_ns_);
  }
  // A wait has ended after so long. Relaxed, and no exchange: of two threads one may go uncounted.
  void took(std::uint64_t waited_ns) {
    const std::uint64_t usual_ns = usual_ns_.load(std::memory_order_relaxed);
    const std::uint64_t counted_ns = std::min(waited_ns, 2 * most_ns_);  // one long wait does not spoil the next ones
    usual_ns_.store(usual_ns - usual_ns / weight + counted_ns / weight, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t weight = 8;  // the last eight waits or so are what is usual

  const std::uint64_t least_ns_;
  const std::uint64_t most_ns_;
  std::atomic<std::uint64_t> usual_ns_{0};
};

}  // namespace farsum
