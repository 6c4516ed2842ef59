#include "os/thread_mark.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace farsum::os {

// The kernel's number, by which it says whether the thread lives, and one that does not come again where the kernel
// gives its number to another thread.
std::uint64_t thread_mark() {
  if (own_thread_mark == no_mark) {
    static constinit std::atomic<std::uint32_t> marks{0};
    const auto number = static_cast<std::uint32_t>(syscall(SYS_gettid));
    // Relaxed: only to differ.
    own_thread_mark = std::uint64_t{marks.fetch_add(1, std::memory_order_relaxed)} << 32 | number;
  }
  return own_thread_mark;
}

bool has_ended(std::uint64_t thread_mark) {
  const auto number = static_cast<std::uint32_t>(thread_mark);
  return syscall(SYS_tgkill, getpid(), number, 0) != 0 && errno == ESRCH;
}

}  // namespace farsum::os
