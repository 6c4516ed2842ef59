#include "common/busy_loops.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace bench {
namespace {

[[noreturn]] void loop(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it has ended meanwhile
  for (volatile unsigned long turns = 0;;) turns = turns + 1;
}

}  // namespace

pid_t start_busy_loop(LoopSession session) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    if (session == LoopSession::own) setsid();
    loop(parent);
  }
  return child;
}

BusyLoops::BusyLoops(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = start_busy_loop(LoopSession::own);
    if (child < 0) throw std::runtime_error("no process is to be had for a busy loop");
    loops_.push_back(child);
  }
}

BusyLoops::~BusyLoops() {
  for (const pid_t loop : loops_) {
    kill(loop, SIGKILL);
    waitpid(loop, nullptr, 0);
  }
}

}  // namespace bench
