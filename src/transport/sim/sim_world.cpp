#include "transport/sim/sim_world.hpp"

#include <algorithm>
#include <utility>

#include "transport/sim/sim_card.hpp"

namespace farsum {

namespace {

// One message of the largest size must always fit into an empty pair.
SimOptions with_room_for_one(SimOptions options) {
  options.pair_messages = std::max<std::size_t>(options.pair_messages, 1);
  options.pair_bytes = std::max(options.pair_bytes, options.max_message_bytes + options.max_reply_bytes);
  options.turn_budget = std::max<std::size_t>(options.turn_budget, 1);
  return options;
}

}  // namespace

SimWorld::SimWorld(std::uint64_t seed, Rank ranks, const SimOptions& options)
    : seed_(seed),
      options_(with_room_for_one(options)),
      random_(SimRandom::mix(seed)),
      events_(random_.split(), options.record_trace),
      ranks_(ranks) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    ranks_[rank].transport = std::make_unique<SimTransport>(*this, rank);
    ranks_[rank].card = std::make_unique<SimCard>(*this, rank);
  }
}

SimWorld::~SimWorld() = default;

SimTime SimWorld::draw_message_latency() {
  const SimTime latency_ns = draw(options_.message_latency);
  return random_.once_in(options_.long_delay_one_in) ? latency_ns * options_.long_delay_factor : latency_ns;
}

bool SimWorld::run(std::uint64_t most_events) {
  for (std::uint64_t i = 0; i < most_events; ++i) {
    if (!events_.step()) return true;
  }
  return false;
}

SimWorld::Turn& SimWorld::turn_of(Rank rank, SimEventKind kind) {
  return kind == SimEventKind::agent_turn ? ranks_[rank].agent : ranks_[rank].origin;
}

void SimWorld::ask_turn(Rank rank, SimEventKind kind, SimTime delay_ns) {
  Turn& turn = turn_of(rank, kind);
  const SimTime at_ns = events_.now_ns() + delay_ns * ranks_[rank].slowness;
  if (turn.is_due && turn.at_ns <= at_ns) return;
  turn.is_due = true;
  turn.at_ns = at_ns;
  ++turn.serial;
  events_.schedule_at(at_ns, *this, {.kind = kind, .rank = rank, .peer = rank, .detail = turn.serial});
}

void SimWorld::wake_agent(Rank rank) {
  const RankState& state = ranks_[rank];
  if (!state.is_alive || state.agent.is_due) return;
  const SimTime delay_ns = draw(options_.wake_up);
  ask_turn(rank, SimEventKind::agent_turn, state.is_computing ? delay_ns * options_.busy_factor : delay_ns);
}

void SimWorld::wake_origin(Rank rank) {
  if (ranks_[rank].is_alive && ranks_[rank].origin_hook)
    ask_turn(rank, SimEventKind::origin_turn, draw(options_.origin_wake));
}

void SimWorld::run_agent_turn(Rank rank) {
  RankState& state = ranks_[rank];
  if (state.agent_hook) state.agent_hook();
  if (state.handler == nullptr) return;
  const std::size_t finished = state.transport->poll_requests(*state.handler, options_.turn_budget);
  if (!state.transport->has_requests()) return;
  const SimTime delay_ns = finished > 0 ? draw(options_.service) * finished : draw(options_.again_pause);
  ask_turn(rank, SimEventKind::agent_turn, delay_ns);
}

void SimWorld::on_event(const SimEvent& event) {
  if (event.kind == SimEventKind::call) {
    run_call(event);
    return;
  }
  Turn& turn = turn_of(event.rank, event.kind);
  if (!ranks_[event.rank].is_alive || !turn.is_due || turn.serial != event.detail) return;
  if (postpone_if_frozen(event)) return;
  turn.is_due = false;
  if (event.kind == SimEventKind::agent_turn) {
    run_agent_turn(event.rank);
  } else {
    ranks_[event.rank].origin_hook();
  }
}

bool SimWorld::postpone_if_frozen(const SimEvent& event) {
  const SimTime until_ns = ranks_[event.rank].frozen_until_ns;
  if (until_ns <= events_.now_ns()) return false;
  events_.schedule_at(until_ns, *this, event);
  return true;
}

void SimWorld::add_call(Rank rank, SimTime delay_ns, Call call) {
  std::uint64_t slot = calls_.size();
  if (free_calls_.empty()) {
    calls_.push_back(std::move(call));
  } else {
    slot = free_calls_.back();
    free_calls_.pop_back();
    calls_[slot] = std::move(call);
  }
  events_.schedule_at(events_.now_ns() + delay_ns, *this,
                      {.kind = SimEventKind::call, .rank = rank, .peer = rank, .detail = slot});
}

void SimWorld::call_after(SimTime delay_ns, std::function<void()> function) {
  add_call(0, delay_ns, {.function = std::move(function), .belongs_to_rank = false});
}

void SimWorld::call_at_rank(Rank rank, SimTime delay_ns, std::function<void()> function) {
  add_call(rank, delay_ns * ranks_[rank].slowness, {.function = std::move(function), .belongs_to_rank = true});
}

void SimWorld::run_call(const SimEvent& event) {
  const bool belongs_to_rank = calls_[event.detail].belongs_to_rank;
  if (belongs_to_rank && ranks_[event.rank].is_alive && postpone_if_frozen(event)) return;
  const Call call = std::move(calls_[event.detail]);
  calls_[event.detail].function = nullptr;
  free_calls_.push_back(event.detail);
  if (!belongs_to_rank || ranks_[event.rank].is_alive) call.function();
}

void SimWorld::freeze_after(Rank rank, SimTime delay_ns, SimTime for_ns) {
  call_after(delay_ns, [this, rank, for_ns] {
    ranks_[rank].frozen_until_ns = std::max(ranks_[rank].frozen_until_ns, now_ns() + for_ns);
  });
}

void SimWorld::kill_after(Rank rank, SimTime delay_ns) {
  call_after(delay_ns, [this, rank] { kill_now(rank); });
}

void SimWorld::kill_now(Rank rank) {
  if (!ranks_[rank].is_alive) return;
  ranks_[rank].is_alive = false;
  ranks_[rank].transport->on_own_death();
  for (Rank other = 0; other < rank_count(); ++other) {
    if (!ranks_[other].death_hook) continue;
    call_at_rank(other, draw(options_.death_notice), [this, other, rank] { ranks_[other].death_hook(rank); });
  }
}

}  // namespace farsum
