// This rank's agent: started when others may first ask something of the rank, and stopped at the end.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "progress/agent.hpp"
#include "progress/attendance.hpp"
#include "progress/rank_bell.hpp"

namespace farsum {

// Any thread may start it and ask; it is stopped when nobody does any more.
class AgentSide {
 public:
  struct Parts {
    Transport& transport;
    RequestHandler& handler;
    RankBell& bell;
    AgentChores& chores;
    Attendance& attendance;
  };
  AgentSide(const Settings& settings, const Parts& parts)
      : parts_(parts), options_{settings.agent, settings.agent_nice, settings.agent_cpus, {}} {}

  // Notes where the process may run now. Fails where the settings make no sense. Called once, first.
  Status prepare();
  // Where it will run, once it is prepared.
  cpu_set_t cpus() const { return Agent::cpus(options_); }
  // Before it is started.
  void be_crowded(bool is_crowded) { options_.is_crowded = is_crowded; }

  // Does nothing where it runs already.
  Status start();
  void stop();

  // 0: it does not run.
  pid_t thread_id() const;
  std::uint64_t wakeups() const;

 private:
  Parts parts_;
  Agent::Options options_;
  std::mutex mutex_;  // starting it
  std::unique_ptr<Agent> agent_;
  std::atomic<const Agent*> running_{nullptr};
};

}  // namespace farsum
