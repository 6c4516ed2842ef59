// A whole job in one process: its ranks, their network, memory and cards, in virtual time. One seed is one course of
// events. It owns every part; programs and handlers are the caller's and must outlive the last event. Not for use by
// several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transport/sim/sim_events.hpp"
#include "transport/sim/sim_memory.hpp"
#include "transport/sim/sim_options.hpp"
#include "transport/sim/sim_random.hpp"
#include "transport/sim/sim_transport.hpp"

namespace farsum {

class SimCard;

class SimWorld final : private SimEventSink {
 public:
  SimWorld(std::uint64_t seed, Rank ranks, const SimOptions& options = {});
  ~SimWorld() override;
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  std::uint64_t seed() const { return seed_; }
  Rank rank_count() const { return static_cast<Rank>(ranks_.size()); }
  const SimOptions& options() const { return options_; }
  SimTime now_ns() const { return events_.now_ns(); }
  SimMemory& memory() { return memory_; }
  SimTransport& transport(Rank rank) { return *ranks_[rank].transport; }
  SimCard& card(Rank rank) { return *ranks_[rank].card; }

  // --- Who lives at a rank. ---
  // The rank's agent wakes up when requests have come, and serves them with `handler`.
  void set_request_handler(Rank rank, RequestHandler* handler) { ranks_[rank].handler = handler; }
  // Called before the requests of each turn of the agent.
  void set_agent_hook(Rank rank, std::function<void()> hook) { ranks_[rank].agent_hook = std::move(hook); }
  // Called as the rank's own thread when a reply has come or a transfer has ended.
  void set_origin_hook(Rank rank, std::function<void()> hook) { ranks_[rank].origin_hook = std::move(hook); }
  // Called when this rank learns of another's death.
  void set_death_hook(Rank rank, std::function<void(Rank dead)> hook) { ranks_[rank].death_hook = std::move(hook); }
  // A rank that computes is slower to wake its agent.
  void set_computing(Rank rank, bool is_computing) { ranks_[rank].is_computing = is_computing; }
  // A rank that sleeps while a transfer is under way runs so much later than its end.
  void set_transfer_wake(Rank rank, SimTime wake_ns) { ranks_[rank].transfer_wake_ns = wake_ns; }
  // Everything the rank's threads do takes `factor` times as long.
  void set_slowness(Rank rank, std::uint64_t factor) { ranks_[rank].slowness = factor; }

  // --- What happens to it. ---
  void call_after(SimTime delay_ns, std::function<void()> function);
  // Calls as the rank's thread: later when the rank is frozen, never when it is dead.
  void call_at_rank(Rank rank, SimTime delay_ns, std::function<void()> function);
  void wake_agent(Rank rank);
  void wake_origin(Rank rank);
  // Its threads stand still; its memory, its card and its messages on the way do not.
  void freeze_after(Rank rank, SimTime delay_ns, SimTime for_ns);
  void kill_after(Rank rank, SimTime delay_ns);
  bool is_alive(Rank rank) const { return ranks_[rank].is_alive; }

  // --- Running. ---
  bool step() { return events_.step(); }
  // Runs until nothing is left to happen or `most_events` have run; whether nothing is left.
  bool run(std::uint64_t most_events = 1'000'000'000);
  std::uint64_t event_count() const { return events_.event_count(); }
  // The same seed, options and programs give the same hash. Programs may mix in what they saw.
  std::uint64_t trace_hash() const { return events_.trace_hash(); }
  void note(std::uint64_t value) { events_.note(value); }
  const std::vector<SimTraceLine>& trace() const { return events_.trace(); }

  // --- For the world's own parts. ---
  SimEventQueue& events() { return events_; }
  SimRandom& random() { return random_; }
  SimTime draw(SimRange range) { return random_.in(range); }
  SimTime draw_message_latency();
  SimTime transfer_wake(Rank rank) const { return ranks_[rank].transfer_wake_ns; }

 private:
  // One of a rank's two threads. A turn that was asked for earlier than the one on its way replaces it.
  struct Turn {
    bool is_due = false;
    SimTime at_ns = 0;
    std::uint64_t serial = 0;
  };
  struct RankState {
    std::unique_ptr<SimTransport> transport;
    std::unique_ptr<SimCard> card;
    RequestHandler* handler = nullptr;
    std::function<void()> agent_hook;
    std::function<void()> origin_hook;
    std::function<void(Rank)> death_hook;
    Turn agent;
    Turn origin;
    SimTime frozen_until_ns = 0;
    SimTime transfer_wake_ns = 0;
    std::uint64_t slowness = 1;
    bool is_computing = false;
    bool is_alive = true;
  };
  struct Call {
    std::function<void()> function;
    bool belongs_to_rank = false;
  };

  void on_event(const SimEvent& event) override;
  void ask_turn(Rank rank, SimEventKind kind, SimTime delay_ns);
  Turn& turn_of(Rank rank, SimEventKind kind);
  bool postpone_if_frozen(const SimEvent& event);
  void run_agent_turn(Rank rank);
  void run_call(const SimEvent& event);
  void add_call(Rank rank, SimTime delay_ns, Call call);
  void kill_now(Rank rank);

  std::uint64_t seed_;
  SimOptions options_;
  SimRandom random_;
  SimEventQueue events_;
  SimMemory memory_;
  std::vector<RankState> ranks_;
  std::vector<Call> calls_;
  std::vector<std::uint64_t> free_calls_;
};

}  // namespace farsum
