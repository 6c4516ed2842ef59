#include "os/thread_mark.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace farsum::os {
namespace {

// The first thread of a process that has left by pthread_exit keeps its number until the last one ends, but not its
// memory.
bool has_no_memory(pid_t thread) {
  char byte = 0;
  char copy = 0;
  const iovec here{&copy, 1};
  const iovec there{&byte, 1};
  return process_vm_readv(thread, &here, 1, &there, 1, 0) < 0 && errno == ESRCH;
}

}  // namespace

// The kernel's number, by which it says whether the thread lives, and one that does not come again where the kernel
// gives its number to another thread. A forked child has its parent's mark until it asks for its own.
std::uint64_t thread_mark() {
  const auto number = static_cast<std::uint32_t>(syscall(SYS_gettid));
  if (own_thread_mark == no_mark || static_cast<std::uint32_t>(own_thread_mark) != number) {
    static constinit std::atomic<std::uint32_t> marks{0};
    // Relaxed: only to differ.
    own_thread_mark = std::uint64_t{marks.fetch_add(1, std::memory_order_relaxed)} << 32 | number;
  }
  return own_thread_mark;
}

bool has_ended(std::uint64_t thread_mark) {
  const auto number = static_cast<pid_t>(static_cast<std::uint32_t>(thread_mark));
  if (syscall(SYS_tgkill, getpid(), number, 0) != 0) return errno == ESRCH;
  return number == getpid() && has_no_memory(number);
}

}  // namespace farsum::os
