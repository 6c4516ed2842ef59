#include "stepper.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>

#include "job.hpp"

namespace farsum::faults {

namespace {

constexpr std::uint64_t patience_ns = 30'000'000'000;

void set_alarm(long seconds) {
  const itimerval timer{{seconds, 0}, {seconds, 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

Bound::Bound(pid_t thread) : thread_(thread) {
  const int here = sched_getcpu();
  if (here < 0 || sched_getaffinity(thread_, sizeof before_, &before_) != 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(here), &one);
  is_bound_ = sched_setaffinity(thread_, sizeof one, &one) == 0;
}

Bound::~Bound() {
  if (is_bound_) (void)sched_setaffinity(thread_, sizeof before_, &before_);
}

Stepper::Stepper(pid_t thread, bool leads)
    : thread_(thread), leads_(leads), self_bound_(0), thread_bound_(thread), deadline_ns_(now_ns() + patience_ns) {
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) {};
  sigaction(SIGALRM, &interrupt, nullptr);
  set_alarm(1);
  if (ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) return;
  attached_ = ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0 && wait_stopped();
}

Stepper::~Stepper() {
  set_alarm(0);
  if (!attached_ || ptrace(PTRACE_DETACH, thread_, nullptr, nullptr) == 0) return;
  // Killed. Its process counts as alive until the tracer has seen the end of each traced thread; the first is the
  // parent's business.
  if (!leads_) waitpid(thread_, nullptr, __WALL);
}

bool Stepper::wait_stopped() {
  for (;;) {
    int status = 0;
    // Blocking, for a step takes microseconds; the watchdog's alarm interrupts it.
    const pid_t changed = waitpid(thread_, &status, __WALL);
    if (changed == thread_) {
      if (!WIFSTOPPED(status)) return false;
      const int signal = WSTOPSIG(status);
      signal_ = signal == SIGTRAP || signal == SIGSTOP ? 0 : signal;
      return true;
    }
    if ((changed < 0 && errno != EINTR) || now_ns() > deadline_ns_) return false;
  }
}

bool Stepper::step() {
  ++steps_;
  return ptrace(PTRACE_SINGLESTEP, thread_, nullptr, signal_) == 0 && wait_stopped();
}

bool Stepper::set_debug_register(std::size_t index, std::uint64_t value) {
#if defined(__x86_64__)
  const std::size_t at = offsetof(struct user, u_debugreg) + index * sizeof(user::u_debugreg[0]);
  return ptrace(PTRACE_POKEUSER, thread_, at, value) == 0;
#else
  return static_cast<void>(index), static_cast<void>(value), false;
#endif
}

bool Stepper::run_to_write(std::uint64_t address, const std::function<bool()>& there) {
  constexpr std::uint64_t none = 0, four_bytes_written = 1 | 0b01 << 16 | 0b11 << 18;
  if (!set_debug_register(0, address) || !set_debug_register(7, four_bytes_written)) return false;
  bool is_there = there();
  while (!is_there && ptrace(PTRACE_CONT, thread_, nullptr, signal_) == 0 && wait_stopped()) is_there = there();
  return set_debug_register(7, none) && is_there;
}

bool Stepper::step_until(const std::function<bool()>& there) {
  while (!there()) {
    if (!step()) return false;
  }
  return true;
}

pid_t agent_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  pid_t found = 0;
  DIR* tasks = opendir(folder.c_str());
  if (tasks == nullptr) return 0;
  while (const dirent* entry = readdir(tasks)) {
    std::string name;
    std::getline(std::ifstream(folder + "/" + entry->d_name + "/comm"), name);
    if (name == "farsum-agent") found = std::atoi(entry->d_name);
  }
  closedir(tasks);
  return found;
}

}  // namespace farsum::faults
