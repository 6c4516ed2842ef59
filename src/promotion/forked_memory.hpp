// What a process that was just forked does with the memory that its parent has promoted: it gets private copies at the
// same addresses, while the parent waits, so that it sees the memory as it was. Nothing here takes a lock or allocates,
// and after the fork nothing is called but the kernel: the child may be one of _Fork(), called in a signal handler that
// has interrupted malloc.
#pragma once

#include <sys/types.h>

#include <array>

namespace farsum::os {

// Between a parent that waits and its child that copies. The child's death is seen, and that there was none.
class ChildReport {
 public:
  constexpr ChildReport() = default;
  // Before the fork. Where no descriptor is left the parent does not wait, and what it writes meanwhile may show in the
  // child; nothing flows the other way.
  void open();
  // In the parent: until the child has finished, has died, was never made, or has shown no life for long.
  void wait();

  // In the child, in this order.
  void begin_in_child();
  void tell_of_life();
  void finish();

 private:
  void report(char what);

  // The child reports on the second, whose end of file tells of its death. A pipe would do, but for SIGPIPE when the
  // parent has lost patience.
  std::array<int, 2> sockets_{-1, -1};
};

// In a child, with signals blocked: makes private every map of a file of promoted_files() outside the place where the
// process maps that itself. Where the child has no room for the copy, it faults if it touches the memory. Where the
// maps cannot be read, it says so and ends: it must not write into its parent's memory.
void keep_promoted_memory(ChildReport& report);

// Calls `make_child`, which returns twice as fork() does but runs no fork handlers, such as _Fork(). The child has its
// own copies when this returns in it. Returns what `make_child` has; errno is its.
pid_t fork_bare(pid_t (*make_child)());

}  // namespace farsum::os
