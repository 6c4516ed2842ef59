#include "promotion/held_calls.hpp"

#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/user.h>

#include "os/raw_system.hpp"
#include "promotion/task_list.hpp"

namespace farsum::os {
namespace {

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

}  // namespace

bool is_in_call_that_may_be_cut_short(const char* text) {
  const char* word = text;
  if (*word < '0' || *word > '9') return false;
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
  return may_be_cut_short(call, arguments);
}

#if defined(__x86_64__)
namespace {

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

}  // namespace

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

}  // namespace farsum::os
