// Lets one thread of a rank run instruction by instruction, so that a test can stop it exactly where it wants to kill
// it. Needs no help from the engine: the rank is a child of the test, which traces it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace farsum::faults {

// Keeps a thread on the processor that this one runs on, as long as it lives.
class Bound {
 public:
  explicit Bound(pid_t thread);
  ~Bound();
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  pid_t thread_;
  cpu_set_t before_{};
  bool is_bound_ = false;
};

class Stepper {
 public:
  // Stops the thread, which is the first of its process or not. Check attached(): sandboxes may refuse.
  Stepper(pid_t thread, bool leads);
  // Lets it go on, unless it is gone.
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  bool attached() const { return attached_; }
  // One instruction, or one system call however long it blocks. False when the thread ended, or the watchdog's time is
  // up.
  bool step();
  // Lets it run until there() holds after it has written to the four bytes at that address of its own. False where the
  // processor tells of no writes here, so that only steps are left, and as step() does.
  bool run_to_write(std::uint64_t address, const std::function<bool()>& there);
  // Steps until there() holds; false as step() does.
  bool step_until(const std::function<bool()>& there);
  std::uint64_t steps() const { return steps_; }

 private:
  bool wait_stopped();
  bool set_debug_register(std::size_t index, std::uint64_t value);

  pid_t thread_;
  bool leads_;
  // On one processor a step takes a tenth of the time: otherwise each wakes the other's from its sleep.
  Bound self_bound_, thread_bound_;
  bool attached_ = false;
  std::uint64_t deadline_ns_ = 0;
  std::uint64_t steps_ = 0;
  int signal_ = 0;  // to be delivered with the next step
};

// The agent's thread of a rank; 0 when it has none yet.
pid_t agent_of(pid_t process);

}  // namespace farsum::faults
