// Blocks all signals of the calling thread while it lives. A thread inherits its maker's signal mask: with all blocked
// there is no instant in which a thread made meanwhile could take a signal of the program.
#pragma once

#include <csignal>

namespace farsum::os {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace farsum::os
