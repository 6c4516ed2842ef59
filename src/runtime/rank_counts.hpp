// What this rank counts, and its statistics, which are gathered from whoever counts something.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectives/letter_desk.hpp"
#include "progress/thread_waiter.hpp"
#include "protocol/origin/engine.hpp"
#include "runtime/agent_side.hpp"
#include "runtime/network_side.hpp"
#include "transport/network.hpp"
#include "transport/shm/shm_transport.hpp"
#include "window/path_counters.hpp"
#include "window/traffic.hpp"
#include "window/window_parts.hpp"

namespace farsum {

struct RankStatistics {
  std::uint64_t operations[path_count] = {};
  std::uint64_t bytes[path_count] = {};
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_served = 0;
  std::uint64_t agent_wakeups = 0;
  std::uint64_t doorbells_rung = 0;
  std::uint64_t waits_slept = 0;
  std::uint64_t stripe_contention = 0;
  std::uint64_t reads_answered = 0;
  std::uint64_t blocks_fetched = 0;
  NetworkCounters network;
};

// Any thread may call.
class RankCounts {
 public:
  // Who else counts.
  struct Sources {
    const OriginEngine& engine;
    const LetterDesk& desk;
    const ShmTransport& transport;
    const ThreadWaiter& waiter;
    const ReadCopies& read_copies;
    const AgentSide& agent;
    const NetworkSide& network;
  };

  // Of all windows, but for what their hot views count.
  PathCounters& paths() { return paths_; }
  // Stripes that were not free at once.
  std::atomic<std::uint64_t>& stripe_contention() { return stripe_contention_; }
  // `hot`: what the windows' hot views have counted.
  RankStatistics read(const Sources& sources, const Traffic& hot) const;

 private:
  PathCounters paths_;
  std::atomic<std::uint64_t> stripe_contention_{0};
};

}  // namespace farsum
