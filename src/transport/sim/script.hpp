// Programs of simulated ranks that read from top to bottom: coroutines that the world resumes.
//
//   SimTask<> program(SimRank& rank) {
//     co_await rank.sleep(500);
//     co_await rank.until([&] { return request.done; });   // looked at in every turn of the rank
//   }
//
// A SimRank owns its programs; the world must outlive it, and no event may run after it is gone.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "transport/sim/sim_world.hpp"

namespace farsum {

template <class Value>
struct SimTaskResult {
  std::optional<Value> value;
  void return_value(Value given) { value = std::move(given); }
  Value take() { return std::move(*value); }
};

template <>
struct SimTaskResult<void> {
  void return_void() {}
  void take() {}
};

// Starts when it is awaited (or given to SimRank::start), and resumes whoever awaits it when it ends.
template <class Value = void>
class [[nodiscard]] SimTask {
 public:
  struct promise_type : SimTaskResult<Value> {
    std::coroutine_handle<> awaited_by;

    struct AtEnd {
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
        const std::coroutine_handle<> next = self.promise().awaited_by;
        return next ? next : std::noop_coroutine();
      }
      void await_resume() const noexcept {}
    };

    SimTask get_return_object() { return SimTask(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    AtEnd final_suspend() const noexcept { return {}; }
    void unhandled_exception() { std::terminate(); }
  };

  explicit SimTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  SimTask(SimTask&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SimTask& operator=(SimTask&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~SimTask() {
    if (handle_) handle_.destroy();
  }

  bool is_finished() const { return handle_.done(); }
  std::coroutine_handle<> handle() const { return handle_; }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().awaited_by = awaiting;
    return handle_;
  }
  Value await_resume() { return handle_.promise().take(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// One rank's own thread.
class SimRank {
 public:
  SimRank(SimWorld& world, Rank rank) : world_(world), rank_(rank) {
    world_.set_origin_hook(rank, [this] { take_turn(); });
  }
  ~SimRank() { world_.set_origin_hook(rank_, nullptr); }
  SimRank(const SimRank&) = delete;
  SimRank& operator=(const SimRank&) = delete;

  SimWorld& world() { return world_; }
  Rank rank() const { return rank_; }

  // What the rank does at the beginning of a turn, before its programs look whether they may go on: taking in replies.
  void set_drive(std::function<void()> drive) { drive_ = std::move(drive); }

  void start(SimTask<> program, SimTime delay_ns = 0) {
    programs_.push_back(std::move(program));
    world_.call_at_rank(rank_, delay_ns, [handle = programs_.back().handle()] { handle.resume(); });
  }
  bool is_finished() const {
    for (const SimTask<>& program : programs_) {
      if (!program.is_finished()) return false;
    }
    return true;
  }

  // Goes on in the first turn in which `condition()` holds; at once when it holds already.
  template <class Condition>
  auto until(Condition condition) {
    return Until<Condition>(*this, std::move(condition));
  }
  auto sleep(SimTime for_ns) { return Sleep(*this, for_ns); }

 private:
  struct Waiting {
    std::coroutine_handle<> handle;
    Waiting() = default;
    virtual bool is_over() = 0;

   protected:
    ~Waiting() = default;
  };

  template <class Condition>
  struct Until final : Waiting {
    Until(SimRank& rank, Condition condition) : rank_(rank), condition_(std::move(condition)) {}
    bool is_over() override { return condition_(); }
    bool await_ready() { return condition_(); }
    void await_suspend(std::coroutine_handle<> awaiting) {
      this->handle = awaiting;
      rank_.waiting_.push_back(this);
    }
    void await_resume() const {}

   private:
    SimRank& rank_;
    Condition condition_;
  };

  struct Sleep {
    Sleep(SimRank& rank, SimTime for_ns) : rank_(rank), for_ns_(for_ns) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      rank_.world_.call_at_rank(rank_.rank_, for_ns_, [handle] { handle.resume(); });
    }
    void await_resume() const {}

   private:
    SimRank& rank_;
    SimTime for_ns_;
  };

  void take_turn() {
    if (drive_) drive_();
    // A program that goes on may end another's wait: look again from the start.
    for (std::size_t i = 0; i < waiting_.size();) {
      if (!waiting_[i]->is_over()) {
        ++i;
        continue;
      }
      const std::coroutine_handle<> handle = waiting_[i]->handle;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      handle.resume();
      i = 0;
    }
  }

  SimWorld& world_;
  Rank rank_;
  std::function<void()> drive_;
  std::vector<SimTask<>> programs_;
  std::vector<Waiting*> waiting_;
};

}  // namespace farsum
