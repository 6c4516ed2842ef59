// Where the engine's life in this process is, for all threads: one may start it, and others see that it runs or ends.
#pragma once

#include <atomic>
#include <utility>

#include "engine_states.hpp"

namespace farsum::mpi {

// Any thread may call.
class EngineLife {
 public:
  // A thread's right to start the engine, which nobody else has meanwhile. It is given up with the object unless the
  // engine was taken up.
  class Claim {
   public:
    Claim(EngineLife& life, EngineState found) : life_(found == EngineState::none ? &life : nullptr), found_(found) {}
    Claim(Claim&& other) noexcept : life_(std::exchange(other.life_, nullptr)), found_(other.found_) {}
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Claim& operator=(Claim&&) = delete;
    ~Claim() {
      if (is_held()) life_->take(EngineStep::give_up);
    }

    bool is_held() const { return life_ != nullptr; }
    // The state when it was asked for; held where it was `none`.
    EngineState found() const { return found_; }
    // Release pairs with the acquire in engine_runs: what belongs to the engine is there.
    void take_up() { std::exchange(life_, nullptr)->take(EngineStep::take_up); }

   private:
    EngineLife* life_;  // null: not held
    EngineState found_;
  };

  // Does not wait.
  Claim claim() { return {*this, take(EngineStep::claim)}; }
  // Until it has stopped.
  bool engine_runs() const {
    const EngineState now = state_.load(std::memory_order_acquire);
    return now == EngineState::running || now == EngineState::ending;
  }
  // From here on nobody claims an engine that runs. Does not wait.
  void announce_end() { take(EngineStep::end); }
  // Waits for a thread that holds a claim. False: the engine does not run. Of one thread, which stops the engine, says
  // so, lets go of what belonged to it, and says that it has ended: then it may be claimed again.
  bool begin_to_end();
  void stopped() { take(EngineStep::stop); }
  void ended() { take(EngineStep::ended); }

 private:
  // The state before the step, which is not taken where the table has none.
  EngineState take(EngineStep step);

  std::atomic<EngineState> state_{EngineState::none};
};

}  // namespace farsum::mpi
