#include "runtime/peer_watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace farsum {

PeerWatch::~PeerWatch() {
  for (const int handle : handles_) {
    if (handle >= 0) close(handle);
  }
}

void PeerWatch::open() {
  const pid_t me = getpid();
  for (std::uint32_t rank = 0; rank < segment_.ranks(); ++rank) {
    const pid_t pid = segment_.rank(rank).pid.load(std::memory_order_relaxed);
    // Ranks that are threads of this process (tests) live as long as it does.
    handles_.push_back(pid == me ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  }
}

bool PeerWatch::is_dead(std::uint32_t rank) const {
  if (rank >= handles_.size() || rank == my_rank_) return false;
  if (handles_[rank] >= 0) {
    // Readable means that every thread of the process has ended: a death by half is none.
    pollfd query{handles_[rank], POLLIN, 0};
    return poll(&query, 1, 0) == 1 && (query.revents & POLLIN) != 0;
  }
  const pid_t pid = segment_.rank(rank).pid.load(std::memory_order_relaxed);
  return pid != getpid() && kill(pid, 0) != 0 && errno == ESRCH;
}

std::uint32_t PeerWatch::known_dead() const { return segment_.failed_rank().load(std::memory_order_acquire); }

std::uint32_t PeerWatch::look() {
  const std::uint32_t known = known_dead();
  if (known != 0) return known;
  for (std::uint32_t rank = 0; rank < segment_.ranks(); ++rank) {
    if (!is_dead(rank)) continue;
    std::uint32_t none = 0;
    // Release: whoever reads it needs nothing else from us; acquire on failure to return the first that was found.
    segment_.failed_rank().compare_exchange_strong(none, rank + 1, std::memory_order_acq_rel, std::memory_order_acquire);
    for (std::uint32_t other = 0; other < segment_.ranks(); ++other) segment_.rank(other).waiters.notify_all();
    return known_dead();
  }
  return 0;
}

}  // namespace farsum
