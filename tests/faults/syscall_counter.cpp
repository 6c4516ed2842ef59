#include "syscall_counter.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "job.hpp"

namespace farsum::faults {
namespace {

constexpr std::uint64_t patience_ns = 60'000'000'000;
constexpr std::uint64_t marking = SYS_getpgrp;
constexpr int at_system_call = SIGTRAP | 0x80;

void set_alarm(long seconds) {
  const itimerval timer{{seconds, 0}, {seconds, 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

std::uint64_t count_of(const SystemCalls& calls) {
  std::uint64_t sum = 0;
  for (const auto& [number, count] : calls) sum += count;
  return sum;
}

std::uint64_t count_without_waiting(const SystemCalls& calls) {
  std::uint64_t waiting = 0;
  // The last ones are of who has waited for so long that it looks whether the others live.
  for (const std::uint64_t number : {SYS_futex, SYS_sched_yield, SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_create1,
                                     SYS_epoll_ctl, SYS_pidfd_open, SYS_poll, SYS_getpid}) {
    const auto found = calls.find(number);
    waiting += found == calls.end() ? 0 : found->second;
  }
  return count_of(calls) - waiting;
}

std::string describe(const SystemCalls& calls) {
  std::string text;
  for (const auto& [number, count] : calls) text += fmt::format(" {} of number {};", count, number);
  return text.empty() ? "none" : text;
}

void mark() { (void)syscall(marking); }

SyscallCounter::SyscallCounter(pid_t thread) : thread_(thread) {
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) {};
  sigaction(SIGALRM, &interrupt, nullptr);
  set_alarm(1);
  if (ptrace(PTRACE_SEIZE, thread_, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return;
  attached_ = ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0 && wait_stopped();
}

SyscallCounter::~SyscallCounter() {
  set_alarm(0);
  if (attached_) ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

bool SyscallCounter::wait_stopped() {
  const std::uint64_t deadline_ns = now_ns() + patience_ns;
  for (;;) {
    const pid_t changed = waitpid(thread_, &status_, __WALL);
    if (changed == thread_) return WIFSTOPPED(status_);
    if ((changed < 0 && errno != EINTR) || now_ns() > deadline_ns) return false;
  }
}

bool SyscallCounter::run_to_mark(SystemCalls& calls) {
  calls.clear();
  for (;;) {
    const int signal = WSTOPSIG(status_);
    const bool is_for_program = signal != at_system_call && signal != SIGTRAP && signal != SIGSTOP;
    if (ptrace(PTRACE_SYSCALL, thread_, nullptr, is_for_program ? signal : 0) != 0 || !wait_stopped()) return false;
    if (WSTOPSIG(status_) != at_system_call) continue;
    // Each stops it twice, and one in which the tracer found it once.
    __ptrace_syscall_info info{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread_, sizeof info, &info) <= 0) return false;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    if (info.entry.nr == marking) return true;
    ++calls[info.entry.nr];
  }
}

}  // namespace farsum::faults
