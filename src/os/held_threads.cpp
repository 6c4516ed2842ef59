#include "os/held_threads.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "os/attach.hpp"
#include "os/memory_map.hpp"
#include "os/page_move.hpp"
#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

constexpr std::size_t most_threads = 8192;
constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr int looks_before_sleep = 100;
constexpr long sleep_ns = 20'000;
// What stops a thread for its tracer alone, in the third byte of the status.
constexpr int stop_event = 128;  // PTRACE_EVENT_STOP
// How often threads that sit in calls that would be cut short are given time to leave them: 1, 2, 4... ms.
constexpr int most_attempts = 7;
constexpr long first_gap_ns = 1'000'000;
// What the helper may take beyond the caller's patience, where the kernel does not come back from attaching.
constexpr std::int64_t alarm_margin_ns = 200'000'000;

enum class Failure : std::uint8_t { none, list, too_many, seize, patience, calls, in_call };

enum class Stage : std::uint8_t { asked, stopped, gone };

struct Thread {
  pid_t id = 0;
  Stage stage = Stage::asked;
  std::uint8_t signal = 0;  // it stopped when this one was to be delivered
};

// What the caller and the helper share. Written by the caller before, by the helper until it ends.
struct Hold {
  HeldWork work = nullptr;
  void* argument = nullptr;
  const pid_t* left_alone = nullptr;
  std::size_t left_alone_count = 0;
  pid_t caller = 0;
  pid_t process = 0;
  std::int64_t patience_ns = 0;
  char task_folder[32] = {};  // /proc/PID/task
  char stat_file[32] = {};    // /proc/PID/stat
  std::int64_t deadline_ns = 0;

  Failure failure = Failure::none;
  int error_number = 0;
  pid_t failed_thread = 0;
  bool has_worked = false;
  std::size_t count = 0;
  Thread threads[most_threads];
  char text[1024] = {};
  alignas(16) char names[std::size_t{32} << 10] = {};
};

// ---- the helper: everything down to help() runs while threads are held ----

bool fail(Hold& hold, Failure failure, long error_number, pid_t thread = 0) {
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
  const timespec gap{0, sleep_ns};
  raw_call(SYS_nanosleep, raw_argument(&gap));
}

// The first bytes of a file, ended by a zero; false if it cannot be read.
bool read_text(const char* path, char* text, std::size_t most) {
  const long fd = raw_call(SYS_openat, AT_FDCWD, raw_argument(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const long bytes = raw_call(SYS_read, fd, raw_argument(text), static_cast<long>(most - 1));
  raw_call(SYS_close, fd);
  text[bytes > 0 ? bytes : 0] = '\0';
  return bytes > 0;
}

pid_t parse_number(const char* text) {
  pid_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + (*text - '0');
  return number;
}

// The state in the text of a stat file, from where fields can be counted: it is behind the last bracket, for names may
// hold some. Null if there is none.
const char* state_in(const char* text) {
  const char* state = nullptr;
  for (const char* c = text; *c != '\0'; ++c) state = *c == ')' && c[1] == ' ' ? c + 2 : state;
  return state;
}

// The file of a thread in /proc. Shorter than the place for it, as folder and number are.
struct ThreadPath {
  ThreadPath(const Hold& hold, const char* name, const char* file) {
    add(hold.task_folder);
    add("/");
    add(name);
    add("/");
    add(file);
    text[end] = '\0';
  }
  void add(const char* part) {
    for (; *part != '\0' && end < sizeof text - 1; ++part) text[end++] = *part;
  }

  char text[80];
  std::size_t end = 0;
};

// Whether a thread has ended but is still listed: the first of a process is, until the last has ended.
bool has_ended(Hold& hold, const char* name) {
  const ThreadPath path(hold, name, "stat");
  if (!read_text(path.text, hold.text, sizeof hold.text)) return true;
  const char* state = state_in(hold.text);
  return state != nullptr && (*state == 'Z' || *state == 'X');
}

// The process's own count of its threads, the 18th word from its state on; 0 if it cannot be read. The file `status`
// has it too, behind a list of groups without limit.
long count_of_threads(Hold& hold) {
  if (!read_text(hold.stat_file, hold.text, sizeof hold.text)) return 0;
  const char* word = state_in(hold.text);
  for (int i = 1; i < 18 && word != nullptr; ++i) {
    while (*word != ' ' && *word != '\0') ++word;
    word = *word == ' ' ? word + 1 : nullptr;
  }
  return word == nullptr ? 0 : parse_number(word);
}

#if defined(__x86_64__)
// Calls that give up half way when their thread is stopped, and return less than was asked for.
bool may_be_cut_short(long call, const unsigned long* arguments) {
  switch (call) {
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_copy_file_range:
      return true;
    case SYS_recvfrom:
      return (arguments[3] & MSG_WAITALL) != 0;
    case SYS_recvmsg:
      return (arguments[2] & MSG_WAITALL) != 0;
    default:
      return false;
  }
}
#else
bool may_be_cut_short(long, const unsigned long*) { return true; }
#endif

// Whether a thread may be stopped now, as far as can be told: one that runs may be in any call.
bool may_be_stopped(Hold& hold, const char* name) {
  const ThreadPath path(hold, name, "syscall");
  if (!read_text(path.text, hold.text, sizeof hold.text))
    return has_ended(hold, name) || fail(hold, Failure::calls, 0, parse_number(name));
  // "running", "-1 0xSP 0xPC", or "1 0x3 0x7f...", six arguments and the same two.
  const char* word = hold.text;
  if (*word < '0' || *word > '9') return true;
  const long call = parse_number(word);
  unsigned long arguments[6] = {};
  for (unsigned long& argument : arguments) {
    while (*word != ' ' && *word != '\0') ++word;
    if (*word == '\0') break;
    for (word += 3;; ++word) {
      unsigned long digit = 16;
      if (*word >= '0' && *word <= '9') digit = static_cast<unsigned long>(*word - '0');
      if (*word >= 'a' && *word <= 'f') digit = static_cast<unsigned long>(*word - 'a') + 10;
      if (digit == 16) break;
      argument = argument * 16 + digit;
    }
  }
  return !may_be_cut_short(call, arguments) || fail(hold, Failure::in_call, 0, parse_number(name));
}

// The place of a thread: where it is already, else one that another has left, else a new one; null if there is none.
Thread* place_of(Hold& hold, pid_t id) {
  Thread* vacant = nullptr;
  for (std::size_t i = 0; i < hold.count; ++i) {
    Thread& thread = hold.threads[i];
    if (thread.stage == Stage::gone) {
      vacant = &thread;
    } else if (thread.id == id) {
      return &thread;
    }
  }
  if (vacant != nullptr) return vacant;
  return hold.count < most_threads ? &hold.threads[hold.count] : nullptr;
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
  Thread* const thread = place_of(hold, id);
  if (thread == nullptr) return fail(hold, Failure::too_many, 0);
  const bool is_new = thread == &hold.threads[hold.count];
  if (!is_new && thread->stage != Stage::gone) return true;
  if (!may_be_stopped(hold, name)) return false;
  const long error = raw_call(SYS_ptrace, PTRACE_SEIZE, id);
  if (error != 0) {
    if (!has_ended(hold, name)) return fail(hold, Failure::seize, -error, id);
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

struct Entry {
  std::uint64_t inode;
  std::int64_t position;
  std::uint16_t bytes;
  std::uint8_t type;
  char name[1];
};

using Visit = bool (*)(Hold& hold, const char* name, bool& changed);

// Visits all threads that are listed, until one visit fails. A listing in which threads end may leave some out, so the
// process's own count has to agree.
bool visit_all(Hold& hold, Visit visit, bool& changed) {
  const long folder =
      raw_call(SYS_openat, AT_FDCWD, raw_argument(hold.task_folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return fail(hold, Failure::list, -folder);
  long listed = 0;
  bool is_fine = true;
  for (;;) {
    const long bytes = raw_call(SYS_getdents64, folder, raw_argument(hold.names), sizeof hold.names);
    if (bytes < 0) is_fine = fail(hold, Failure::list, -bytes);
    if (bytes <= 0) break;
    for (long at = 0; at < bytes && is_fine;) {
      const Entry* entry = reinterpret_cast<const Entry*>(hold.names + at);
      at += entry->bytes;
      if (entry->name[0] == '.') continue;
      ++listed;
      is_fine = visit(hold, entry->name, changed);
    }
    if (!is_fine) break;
  }
  raw_call(SYS_close, folder);
  if (!is_fine) return false;
  const long count = count_of_threads(hold);
  if (count == 0) return fail(hold, Failure::list, ENOENT);
  changed = changed || count != listed;
  return true;
}

#if defined(__x86_64__)
// These say EINTR, having done nothing, where others are restarted: some always, the ones of sockets where the socket
// has a time limit. What the thread sees is the call once more, as if it came a little later, and a time limit from its
// beginning.
bool is_restarted_by_hand(const user_regs_struct& registers) {
  switch (registers.orig_rax) {
    case SYS_epoll_wait:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:  // once more it waits for the connection that is being made
      return true;
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return registers.r8 == 0;  // no mask of signals that this call alone lets through
    default:
      return false;
  }
}

void restart_call(pid_t id) {
  user_regs_struct registers;
  if (raw_call(SYS_ptrace, PTRACE_GETREGS, id, 0, raw_argument(&registers)) != 0) return;
  if (static_cast<long>(registers.rax) != -EINTR || !is_restarted_by_hand(registers)) return;
  registers.rax = registers.orig_rax;
  registers.rip -= 2;  // the syscall instruction
  raw_call(SYS_ptrace, PTRACE_SETREGS, id, 0, raw_argument(&registers));
}
#else
void restart_call(pid_t) {}
#endif

// Whether the thread stands still or is gone now.
bool is_settled(Thread& thread) {
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
    Thread& thread = hold.threads[i];
    const bool was_asked = thread.stage == Stage::asked;
    for (int look = 0; !is_settled(thread); ++look) {
      if (look % 16 == 15 && now_ns() > hold.deadline_ns) return fail(hold, Failure::patience, 0, thread.id);
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
    if (now_ns() > hold.deadline_ns) return fail(hold, Failure::patience, 0);
  }
}

// Those that have not stopped yet are let go by the kernel when the helper ends, with their signals.
void let_go(Hold& hold) {
  for (std::size_t i = 0; i < hold.count; ++i) {
    const Thread& thread = hold.threads[i];
    if (thread.stage == Stage::stopped) raw_call(SYS_ptrace, PTRACE_DETACH, thread.id, 0, thread.signal);
  }
}

// Gathers at a moment at which no call is cut in two. First it looks without touching anyone.
bool gather_between_calls(Hold& hold) {
  timespec gap{0, first_gap_ns};
  for (int attempt = 1;; ++attempt) {
    bool changed = false;
    hold.failure = Failure::none;
    if (visit_all(hold, &look_at, changed) && gather(hold)) return true;
    if (hold.failure != Failure::in_call || attempt == most_attempts || now_ns() > hold.deadline_ns) return false;
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
  // The address sanitizer of g++ 12 takes the scopes of these two, put into help(), for left before they begin.
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

int help(void* argument) {
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

// ---- the caller ----

pid_t tracer_of(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  std::string word;
  pid_t tracer = 0;
  while (status >> word) {
    if (word == "TracerPid:") status >> tracer;
  }
  return tracer;
}

std::string why_not_seized(pid_t thread, int error_number) {
  const std::string name = "thread " + std::to_string(thread);
  if (const pid_t tracer = tracer_of(thread); tracer != 0)
    return name + " is traced by process " + std::to_string(tracer) + " already";
  const std::string scope = yama_scope();
  const std::string error = std::strerror(error_number);
  if (error_number == EPERM && !scope.empty() && scope != "0") return "Yama forbids it (its scope is " + scope + ")";
  return "the kernel or a security filter forbids it (" + name + ": " + error + ")";
}

std::string explain(const Hold& hold, int helper_status) {
  if (WIFSIGNALED(helper_status))
    return WTERMSIG(helper_status) == SIGALRM ? "one does not stop in time"
                                              : "the process that was to do it was killed";
  switch (hold.failure) {
    case Failure::none:
      return {};
    case Failure::list:
      return std::string("they cannot be listed (") + std::strerror(hold.error_number) + ")";
    case Failure::too_many:
      return "there are more than " + std::to_string(most_threads);
    case Failure::seize:
      return why_not_seized(hold.failed_thread, hold.error_number);
    case Failure::patience:
      return hold.failed_thread == 0 ? "new ones keep coming"
                                     : "thread " + std::to_string(hold.failed_thread) + " does not stop";
    case Failure::calls:
      return "what thread " + std::to_string(hold.failed_thread) + " waits for cannot be read from /proc";
    case Failure::in_call:
      return "thread " + std::to_string(hold.failed_thread) + " is in a transfer that would be cut short";
  }
  return {};
}

// The place of the helper: a page that nobody may touch, its stack, and what both share.
class Place {
 public:
  Place() : bytes_(whole(page_bytes() + stack_bytes + sizeof(Hold))) {
    void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return;
    memory_ = static_cast<std::byte*>(mapped);
    mprotect(memory_, page_bytes(), PROT_NONE);
  }
  ~Place() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  bool is_made() const { return memory_ != nullptr; }
  std::byte* stack_top() const { return memory_ + page_bytes() + stack_bytes; }
  void* shared() const { return stack_top(); }

 private:
  static std::size_t whole(std::size_t bytes) { return (bytes + page_bytes() - 1) & ~(page_bytes() - 1); }

  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

// In a container that shows another's /proc, the numbers there are not ours.
bool proc_is_ours() {
  char name[16] = {};
  return readlink("/proc/self", name, sizeof name - 1) > 0 && parse_number(name) == getpid();
}

// Valgrind makes a plain fork of our clone, or gives up the program.
bool is_emulated() {
  const std::vector<Map> maps = read_maps();
  return std::any_of(maps.begin(), maps.end(),
                     [](const Map& map) { return map.name.find("/vgpreload_") != std::string::npos; });
}

int reap(pid_t helper) {
  int status = 0;
  while (waitpid(helper, &status, __WALL) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string run_with_threads_held(HeldWork work, void* argument, const HoldRules& rules) {
  if (!has_raw_calls) return "this build cannot hold threads";
  if (!proc_is_ours()) return "/proc does not show this process";
  if (const pid_t tracer = tracer_of(gettid()); tracer != 0)
    return "process " + std::to_string(tracer) + " traces this one";
  if (is_emulated()) return "valgrind runs this process";
  const Place place;
  if (!place.is_made()) return std::string("there is no memory for it: ") + std::strerror(errno);
  // The pages are zero, which is all that the arrays need; only what differs is written.
  Hold& hold = *static_cast<Hold*>(place.shared());
  hold.work = work;
  hold.argument = argument;
  hold.left_alone = rules.left_alone.data();
  hold.left_alone_count = rules.left_alone.size();
  hold.caller = gettid();
  hold.process = getpid();
  hold.patience_ns = std::chrono::nanoseconds(rules.patience).count();
  std::snprintf(hold.task_folder, sizeof hold.task_folder, "/proc/%d/task", getpid());
  std::snprintf(hold.stat_file, sizeof hold.stat_file, "/proc/%d/stat", getpid());

  const SignalsBlocked blocked;
  // With our descriptors, or its end would count as a close of every file of the program, which some file systems take
  // for a flush. No signal tells of its end, so that the program's own waits know nothing of it.
  const int helper =
      clone(&help, place.stack_top(), CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_FS | CLONE_UNTRACED, &hold);
  if (helper < 0) return std::string("no process can be made for it: ") + std::strerror(errno);
  const int status = reap(helper);
  if (hold.has_worked) return {};
  const std::string reason = explain(hold, status);
  return reason.empty() ? "the process that was to do it was killed" : reason;
}

}  // namespace farsum::os
