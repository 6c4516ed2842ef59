#include "engine_life.hpp"

#include <optional>

namespace farsum::mpi {

EngineState EngineLife::take(EngineStep step) {
  // Acquire and release: who takes a step sees what was done before the one that led there, and shows what it did.
  EngineState now = state_.load(std::memory_order_acquire);
  for (;;) {
    const std::optional<EngineState> next = state_after(now, step);
    if (!next) return now;
    if (state_.compare_exchange_weak(now, *next, std::memory_order_acq_rel, std::memory_order_acquire)) break;
  }
  if (now == EngineState::starting) state_.notify_all();
  return now;
}

bool EngineLife::begin_to_end() {
  for (;;) {
    const EngineState before = take(EngineStep::end);
    if (before != EngineState::starting) return before != EngineState::none;
    // Acquire: the engine that was started meanwhile is whole.
    state_.wait(EngineState::starting, std::memory_order_acquire);
  }
}

}  // namespace farsum::mpi
