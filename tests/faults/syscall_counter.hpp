// Counts the system calls of one thread of a rank between marks: the rank calls mark() before and after what is
// counted. The rank is a child of the test, which traces it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace farsum::faults {

// Between two marks, by number of the system call. Sleeps, wakes and the looks at the others' lives of long waits go by
// who comes when.
using SystemCalls = std::map<std::uint64_t, std::uint64_t>;

std::uint64_t count_of(const SystemCalls& calls);
std::uint64_t count_without_waiting(const SystemCalls& calls);
std::string describe(const SystemCalls& calls);

// A system call that nothing else makes.
void mark();

class SyscallCounter {
 public:
  // Stops the thread. Check attached(): sandboxes may refuse.
  explicit SyscallCounter(pid_t thread);
  ~SyscallCounter();
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;

  bool attached() const { return attached_; }
  // Lets it run until its next mark, and what it called on the way. False when it ended, or the watchdog's time is up.
  bool run_to_mark(SystemCalls& calls);

 private:
  bool wait_stopped();

  pid_t thread_;
  bool attached_ = false;
  int status_ = 0;
};

}  // namespace farsum::faults
