#include "runtime/agent_side.hpp"

#include <sched.h>

#include <utility>

namespace farsum {

Status AgentSide::prepare() {
  if (Status status = Agent::check(options_); !status.is_ok()) return status;
  if (sched_getaffinity(0, sizeof options_.start_cpus, &options_.start_cpus) != 0) CPU_ZERO(&options_.start_cpus);
  return {};
}

Status AgentSide::start() {
  const std::lock_guard lock(mutex_);
  if (agent_ != nullptr) return {};
  Result<std::unique_ptr<Agent>> agent =
      Agent::start(options_, parts_.transport, parts_.handler, parts_.bell, parts_.chores, parts_.attendance.serving());
  if (!agent.is_ok()) return agent.take_status();
  agent_ = std::move(agent.value());
  // Release: pairs with the acquire loads of thread_id() and wakeups().
  running_.store(agent_.get(), std::memory_order_release);
  return {};
}

void AgentSide::stop() {
  // Relaxed: nobody asks any more.
  running_.store(nullptr, std::memory_order_relaxed);
  agent_.reset();
}

pid_t AgentSide::thread_id() const {
  const Agent* const agent = running_.load(std::memory_order_acquire);
  return agent == nullptr ? 0 : agent->thread_id();
}

std::uint64_t AgentSide::wakeups() const {
  const Agent* const agent = running_.load(std::memory_order_acquire);
  return agent == nullptr ? 0 : agent->wakeups();
}

}  // namespace farsum
