#include "runtime/rank_counts.hpp"

#include <cstddef>

namespace farsum {

// Relaxed throughout: statistics.
RankStatistics RankCounts::read(const Sources& sources, const Traffic& hot) const {
  RankStatistics statistics;
  for (std::size_t path = 0; path < path_count; ++path) {
    statistics.operations[path] = paths_.operations[path].load(std::memory_order_relaxed);
    statistics.bytes[path] = paths_.bytes[path].load(std::memory_order_relaxed);
  }
  constexpr auto direct = static_cast<std::size_t>(Path::direct);
  statistics.operations[direct] += hot.operations;
  statistics.bytes[direct] += hot.bytes;
  statistics.messages_sent = sources.engine.messages_sent() + sources.desk.sent();
  statistics.messages_served = sources.transport.counters().served.load(std::memory_order_relaxed);
  statistics.doorbells_rung = sources.transport.counters().doorbells.load(std::memory_order_relaxed);
  statistics.agent_wakeups = sources.agent.wakeups();
  statistics.waits_slept = sources.waiter.slept();
  statistics.stripe_contention = stripe_contention_.load(std::memory_order_relaxed);
  statistics.reads_answered = sources.read_copies.answered.load(std::memory_order_relaxed);
  statistics.blocks_fetched = sources.read_copies.fetched.load(std::memory_order_relaxed);
  if (const Network* const network = sources.network.network(); network != nullptr)
    statistics.network = network->counters();
  return statistics;
}

}  // namespace farsum
