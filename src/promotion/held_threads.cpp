#include "promotion/held_threads.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <vector>

#include "os/attach.hpp"
#include "os/blocked_signals.hpp"
#include "os/memory_map.hpp"
#include "os/raw_system.hpp"
#include "os/thread_id.hpp"
#include "promotion/held_helper.hpp"
#include "promotion/page_move.hpp"

namespace farsum::os {
namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10;

// libc's clone() by its other name. The name without underscores is the program's where that was built with
// ThreadSanitizer, whose clone() takes every child without a thread's flags for a fork and ends the program.
extern "C" int clone_of_libc(int (*run)(void*), void* stack_top, int flags, void* argument, ...) asm("__clone");

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
  std::string yama = error_number == EPERM ? why_yama_forbids(yama_scope()) : std::string();
  if (!yama.empty()) return yama;
  return "the kernel or a security filter forbids it (" + name + ": " + std::strerror(error_number) + ")";
}

// The kernel asks for the same right as it does for ptrace.
std::string why_not_read(pid_t thread, int error_number) {
  if (error_number == EPERM || error_number == EACCES) return why_not_seized(thread, EPERM);
  return "what thread " + std::to_string(thread) +
         " waits for cannot be read from /proc: " + std::strerror(error_number);
}

std::string explain(const Hold& hold, int helper_status) {
  if (WIFSIGNALED(helper_status))
    return WTERMSIG(helper_status) == SIGALRM ? "one does not stop in time"
                                              : "the process that was to do it was killed";
  switch (hold.failure) {
    case HoldFailure::none:
      return {};
    case HoldFailure::list:
      return std::string("they cannot be listed (") + std::strerror(hold.error_number) + ")";
    case HoldFailure::too_many:
      return "there are more than " + std::to_string(most_held_threads);
    case HoldFailure::seize:
      return why_not_seized(hold.failed_thread, hold.error_number);
    case HoldFailure::patience:
      return hold.failed_thread == 0 ? "new ones keep coming"
                                     : "thread " + std::to_string(hold.failed_thread) + " does not stop";
    case HoldFailure::calls:
      return why_not_read(hold.failed_thread, hold.error_number);
    case HoldFailure::in_call:
      return "thread " + std::to_string(hold.failed_thread) + " is in a transfer that would be cut short";
  }
  return {};
}

// The memory of the helper: a page that nobody may touch, its stack, and what both share.
class HelperMemory {
 public:
  HelperMemory() : bytes_(whole(page_bytes() + stack_bytes + sizeof(Hold))) {
    void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return;
    memory_ = static_cast<std::byte*>(mapped);
    mprotect(memory_, page_bytes(), PROT_NONE);
  }
  ~HelperMemory() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  HelperMemory(const HelperMemory&) = delete;
  HelperMemory& operator=(const HelperMemory&) = delete;

  bool is_made() const { return memory_ != nullptr; }
  std::byte* stack_top() const { return memory_ + page_bytes() + stack_bytes; }
  void* shared() const { return stack_top(); }

 private:
  static std::size_t whole(std::size_t bytes) { return (bytes + page_bytes() - 1) & ~(page_bytes() - 1); }

  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

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
  if (is_emulated()) return "valgrind runs this process";
  // The threads that one helper traces no other may, and its caller does not stop.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (const pid_t tracer = tracer_of(own_thread_id()); tracer != 0)
    return "process " + std::to_string(tracer) + " traces this one";
  const HelperMemory memory;
  if (!memory.is_made()) return std::string("there is no memory for it: ") + std::strerror(errno);
  // The pages are zero, which is all that the arrays need; only what differs is written.
  Hold& hold = *static_cast<Hold*>(memory.shared());
  hold.work = work;
  hold.argument = argument;
  hold.left_alone = rules.left_alone.data();
  hold.left_alone_count = rules.left_alone.size();
  hold.caller = own_thread_id();
  hold.process = getpid();
  hold.patience_ns = std::chrono::nanoseconds(rules.patience).count();
  hold.tasks.open(hold.process);

  const BlockedSignals blocked;
  // With our descriptors, or its end would count as a close of every file of the program, which some file systems take
  // for a flush. No signal tells of its end, so that the program's own waits know nothing of it.
  const int helper = clone_of_libc(&run_held_helper, memory.stack_top(),
                                   CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_FS | CLONE_UNTRACED, &hold);
  if (helper < 0) return std::string("no process can be made for it: ") + std::strerror(errno);
  const int status = reap(helper);
  if (hold.has_worked) return {};
  const std::string reason = explain(hold, status);
  return reason.empty() ? "the process that was to do it was killed" : reason;
}

}  // namespace farsum::os
