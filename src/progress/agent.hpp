// The agent: the thread of a process that serves what others ask of its memory (but see progress/attendance.hpp). It
// sleeps when there is nothing to do and is woken only if it sleeps; it blocks all signals, calls no MPI and never
// waits for a lock that is held for longer than one turn of serving.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "progress/rank_bell.hpp"
#include "progress/serving_mutex.hpp"
#include "transport/transport.hpp"

namespace farsum {

// What the agent does each turn beside serving requests, after it has taken the rings off its bell: whatever a ring may
// be about is looked at here, or in the transport, before the agent sleeps.
class AgentChores {
 public:
  virtual ~AgentChores() = default;
  // `has_unfinished`: the poll before has left a request that could not be finished. Returns how many nanoseconds the
  // agent may sleep at most before it comes again; 0: until something happens.
  virtual std::uint64_t run(bool has_unfinished) = 0;
};

class Agent {
 public:
  struct Options {
    AgentMode mode = AgentMode::sleep;
    std::int64_t nice = 0;
    std::string cpus;         // empty: start_cpus
    cpu_set_t start_cpus{};   // where the process might run when it began; empty: where the starting thread may
    bool is_crowded = false;  // an agent that never sleeps lets others of its processor run now and then
  };

  // Why the options make no sense; fine when they do.
  static Status check(const Options& options);
  // Where the options, which make sense, let the agent run.
  static cpu_set_t cpus(const Options& options);
  // Of one that never sleeps, in a crowded node: so many turns in which it found nothing come before it yields.
  static constexpr std::uint32_t idle_turns_before_yield = 1000;

  // Starts the thread. `transport`, `handler`, `bell`, `chores` and `serving` outlive it; it holds `serving` while it
  // serves. The chores take it themselves.
  static Result<std::unique_ptr<Agent>> start(const Options& options, Transport& transport, RequestHandler& handler,
                                              RankBell& bell, AgentChores& chores, ServingMutex& serving);
  // Stops the thread after it has served what is there.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Relaxed: a statistic.
  std::uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }
  // Acquire pairs with the release in take_place.
  pid_t thread_id() const { return thread_id_.load(std::memory_order_acquire); }

 private:
  Agent(const Options& options, Transport& transport, RequestHandler& handler, RankBell& bell, AgentChores& chores,
        ServingMutex& serving)
      : options_(options), transport_(transport), handler_(handler), bell_(bell), chores_(chores), serving_(serving) {}
  int start_thread();
  static void* run(void* agent);
  void serve(AgentMode mode);
  void pause_idle(std::uint32_t idle_turns) const;
  void take_place();

  const Options options_;
  Transport& transport_;
  RequestHandler& handler_;
  RankBell& bell_;
  AgentChores& chores_;
  ServingMutex& serving_;
  std::atomic<std::uint64_t> wakeups_{0};
  std::atomic<pid_t> thread_id_{0};
  pthread_t thread_{};
  bool has_thread_ = false;
};

}  // namespace farsum
