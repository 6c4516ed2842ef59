#include "promotion/held_helper.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>

#include "os/raw_system.hpp"
#include "promotion/held_calls.hpp"

namespace farsum::os {
namespace {

using Stage = HeldThread::Stage;

constexpr int looks_before_sleep = 100;
constexpr long gap_ns = 20'000;
// What stops a thread for its tracer alone, in the third byte of the status.
constexpr int stop_event = 128;  // PTRACE_EVENT_STOP
// How often threads that sit in calls that would be cut short are given time to leave them: 1, 2, 4... ms.
constexpr int most_attempts = 7;
constexpr long first_gap_ns = 1'000'000;
// What the helper may take beyond the caller's patience, where the kernel does not come back from attaching.
constexpr std::int64_t alarm_margin_ns = 200'000'000;

bool fail(Hold& hold, HoldFailure failure, long error_number, pid_t thread = 0) {
  hold.failure = failure;
  hold.error_number = static_cast<int>(error_number);
  hold.failed_thread = thread;
  return false;
}

std::int64_t now_ns() {
  timespec now{};
  raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, raw_argument(&now));
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

void pause_shortly(int look) {
  if (look < looks_before_sleep) {
    raw_call(SYS_sched_yield);
    return;
  }
  const timespec gap{0, gap_ns};
  raw_call(SYS_nanosleep, raw_argument(&gap));
}

// Whether a thread may be stopped now, as far as can be told.
bool may_be_stopped(Hold& hold, const char* name) {
  const char* const text = hold.tasks.read_file(name, "syscall");
  if (text == nullptr) {
    const int error_number = hold.tasks.error();
    return hold.tasks.has_ended(name) || fail(hold, HoldFailure::calls, error_number, parse_number(name));
  }
  return !is_in_call_that_may_be_cut_short(text) || fail(hold, HoldFailure::in_call, 0, parse_number(name));
}

// The place of a thread: where it is already, else one that another has left, else a new one; null if there is none.
HeldThread* place_of(Hold& hold, pid_t id) {
  HeldThread* vacant = nullptr;
  for (std::size_t i = 0; i < hold.count; ++i) {
    HeldThread& thread = hold.threads[i];
    if (thread.stage == Stage::gone) {
      vacant = &thread;
    } else if (thread.id == id) {
      return &thread;
    }
  }
  if (vacant != nullptr) return vacant;
  return hold.count < most_held_threads ? &hold.threads[hold.count] : nullptr;
}

bool is_exempt(const Hold& hold, pid_t id) {
  for (std::size_t i = 0; i < hold.left_alone_count; ++i) {
    if (hold.left_alone[i] == id) return true;
  }
  return id == hold.caller;
}

// Asks one thread to stop. `changed` becomes true where the list has to be read again.
bool ask(Hold& hold, const char* name, bool& changed) {
  const pid_t id = parse_number(name);
  if (is_exempt(hold, id)) return true;
  HeldThread* const thread = place_of(hold, id);
  if (thread == nullptr) return fail(hold, HoldFailure::too_many, 0);
  const bool is_new = thread == &hold.threads[hold.count];
  if (!is_new && thread->stage != Stage::gone) return true;
  if (!may_be_stopped(hold, name)) return false;
  const long error = raw_call(SYS_ptrace, PTRACE_SEIZE, id);
  if (error != 0) {
    if (!hold.tasks.has_ended(name)) return fail(hold, HoldFailure::seize, -error, id);
    // It may have made another one that is not listed, and be taken off the count in its stead. Only the first of a
    // process stays listed.
    changed = changed || id != hold.process;
    return true;
  }
  changed = true;
  hold.count += is_new ? 1 : 0;
  thread->id = id;
  thread->stage = Stage::asked;
  thread->signal = 0;
  // Fails only for one that has ended, which the wait finds out.
  raw_call(SYS_ptrace, PTRACE_INTERRUPT, id);
  return true;
}

// Only looks at one.
bool look_at(Hold& hold, const char* name, bool&) {
  return is_exempt(hold, parse_number(name)) || may_be_stopped(hold, name);
}

using Visit = bool (*)(Hold& hold, const char* name, bool& changed);

// Visits all threads that are listed, until one visit fails. A listing in which threads end may leave some out, so the
// process's own count has to agree.
bool visit_all(Hold& hold, Visit visit, bool& changed) {
  struct Round {
    Hold& hold;
    Visit visit;
    bool& changed;
    bool is_fine = true;
  } round{hold, visit, changed};
  const long listed = hold.tasks.visit(
      [](void* argument, const char* name) {
        Round& one = *static_cast<Round*>(argument);
        one.is_fine = one.visit(one.hold, name, one.changed);
        return one.is_fine;
      },
      &round);
  if (!round.is_fine) return false;
  if (listed < 0) return fail(hold, HoldFailure::list, -listed);
  const long count = hold.tasks.count();
  if (count == 0) return fail(hold, HoldFailure::list, ENOENT);
  changed = changed || count != listed;
  return true;
}

// Whether the thread stands still or is gone now.
bool has_stopped(HeldThread& thread) {
  if (thread.stage != Stage::asked) return true;
  int status = 0;
  const long waited = raw_call(SYS_wait4, thread.id, raw_argument(&status), __WALL | WNOHANG);
  if (waited == 0 || waited == -EINTR) return false;
  if (waited != thread.id || (status & 0xff) != 0x7f) {
    thread.stage = Stage::gone;
    return true;
  }
  thread.stage = Stage::stopped;
  if (status >> 16 != stop_event) {
    thread.signal = static_cast<std::uint8_t>(status >> 8);
  } else if ((status >> 8 & 0x7f) == SIGTRAP) {
    restart_call(thread.id);
  }
  return true;
}

bool await_all(Hold& hold, bool& changed) {
  for (std::size_t i = 0; i < hold.count; ++i) {
    HeldThread& thread = hold.threads[i];
    const bool was_asked = thread.stage == Stage::asked;
    for (int look = 0; !has_stopped(thread); ++look) {
      if (look % 16 == 15 && now_ns() > hold.deadline_ns) return fail(hold, HoldFailure::patience, 0, thread.id);
      pause_shortly(look);
    }
    changed = changed || (was_asked && thread.stage == Stage::gone);
  }
  return true;
}

// A thread that does not stand still yet may make others, so only a round that finds nothing new is the last.
bool gather(Hold& hold) {
  for (;;) {
    bool changed = false;
    if (!visit_all(hold, &ask, changed) || !await_all(hold, changed)) return false;
    if (!changed) return true;
    if (now_ns() > hold.deadline_ns) return fail(hold, HoldFailure::patience, 0);
  }
}

// Those that have not stopped yet are let go by the kernel when the helper ends, with their signals.
void let_go(Hold& hold) {
  for (std::size_t i = 0; i < hold.count; ++i) {
    const HeldThread& thread = hold.threads[i];
    if (thread.stage == Stage::stopped) raw_call(SYS_ptrace, PTRACE_DETACH, thread.id, 0, thread.signal);
  }
}

// Gathers at a moment at which no call is cut in two. First it looks without touching anyone.
bool gather_between_calls(Hold& hold) {
  timespec gap{0, first_gap_ns};
  for (int attempt = 1;; ++attempt) {
    bool changed = false;
    hold.failure = HoldFailure::none;
    if (visit_all(hold, &look_at, changed) && gather(hold)) return true;
    if (hold.failure != HoldFailure::in_call || attempt == most_attempts || now_ns() > hold.deadline_ns) return false;
    // Only threads that stand still can be let go.
    if (!await_all(hold, changed)) return false;
    let_go(hold);
    hold.count = 0;
    raw_call(SYS_nanosleep, raw_argument(&gap));
    gap.tv_nsec *= 2;
  }
}

struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};
constexpr KernelAction default_action{};  // SIG_DFL

// While another thread is inside exec, to attach waits for that to be over, and it waits in turn for the threads that
// are attached already to be let go: the alarm ends the helper, which is the one way out. The helper is a process of
// its own, so neither its timer nor what it does with signals is the program's.
class Alarm {
 public:
  // The address sanitizer of g++ 12 takes the scopes of these two, put into run_held_helper(), for left before they
  // begin.
  [[gnu::noinline]] explicit Alarm(std::int64_t after_ns) {
    raw_call(SYS_rt_sigaction, SIGALRM, raw_argument(&default_action), 0, sizeof mask_);
    raw_call(SYS_rt_sigprocmask, SIG_UNBLOCK, raw_argument(&mask_), 0, sizeof mask_);
    itimerval timer{};
    timer.it_value.tv_sec = after_ns / 1'000'000'000;
    timer.it_value.tv_usec = after_ns % 1'000'000'000 / 1000;
    raw_call(SYS_setitimer, ITIMER_REAL, raw_argument(&timer));
  }
  [[gnu::noinline]] ~Alarm() {
    const itimerval off{};
    raw_call(SYS_setitimer, ITIMER_REAL, raw_argument(&off));
    raw_call(SYS_rt_sigprocmask, SIG_BLOCK, raw_argument(&mask_), 0, sizeof mask_);
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  const unsigned long mask_ = 1ul << (SIGALRM - 1);
};

bool gather_in_time(Hold& hold) {
  const Alarm alarm(hold.patience_ns + alarm_margin_ns);
  return gather_between_calls(hold);
}

}  // namespace

int run_held_helper(void* argument) {
  Hold& hold = *static_cast<Hold*>(argument);
  hold.deadline_ns = now_ns() + hold.patience_ns;
  if (gather_in_time(hold)) {
    hold.work(hold.argument);
    hold.has_worked = true;
  }
  let_go(hold);
  // Not by way of the library, whose exit belongs to the caller.
  for (;;) raw_call(SYS_exit, 0);
}

}  // namespace farsum::os
