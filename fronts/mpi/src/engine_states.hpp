// The states of the engine's life in this process and what leads from one to the next; no more than that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace farsum::mpi {

// `starting` from when a thread has claimed the start until it has started or given it up; `ending` from when no window
// may begin to be made until the engine has stopped; `stopped` until what the front has kept for it is gone.
enum class EngineState : std::uint8_t { none, starting, running, ending, stopped };
inline constexpr std::size_t engine_states = 5;

enum class EngineStep : std::uint8_t {
  claim,    // a thread would start the engine
  give_up,  // that thread does not
  take_up,  // the engine runs, and all that belongs to it is there
  end,      // no window begins to be made from here on
  stop,     // the engine has stopped
  ended,    // so has all that belonged to it
};
inline constexpr std::size_t engine_steps = 6;

// Nothing where the step cannot be taken in that state. An end in a program whose engine does not run changes nothing;
// one beside a start leaves it to whoever ends, who waits until it is done.
constexpr std::optional<EngineState> state_after(EngineState state, EngineStep step) {
  constexpr std::optional<EngineState> never;
  constexpr std::optional<EngineState> none = EngineState::none;
  constexpr std::optional<EngineState> starting = EngineState::starting;
  constexpr std::optional<EngineState> running = EngineState::running;
  constexpr std::optional<EngineState> ending = EngineState::ending;
  constexpr std::optional<EngineState> stopped = EngineState::stopped;
  constexpr std::array<std::array<std::optional<EngineState>, engine_steps>, engine_states> table = {{
      // claim, give_up, take_up, end, stop, ended
      {starting, never, never, none, never, never},    // none
      {never, none, running, starting, never, never},  // starting
      {never, never, never, ending, never, never},     // running
      {never, never, never, ending, stopped, never},   // ending
      {never, never, never, stopped, never, none},     // stopped
  }};
  return table[static_cast<std::size_t>(state)][static_cast<std::size_t>(step)];
}

}  // namespace farsum::mpi
