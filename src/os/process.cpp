#include "os/process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace farsum::os {

bool process_has_ended(pid_t pid) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) return errno == ESRCH;
  // Readable from the end of the last thread on, also while the process is a zombie.
  pollfd query{handle, POLLIN, 0};
  const bool ended = poll(&query, 1, 0) == 1;
  close(handle);
  return ended;
}

}  // namespace farsum::os
