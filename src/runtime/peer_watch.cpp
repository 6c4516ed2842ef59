#include "runtime/peer_watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

namespace farsum {

PeerWatch::~PeerWatch() {
  for (const std::atomic<int>& handle : handles_) {
    if (const int opened = handle.load(std::memory_order_relaxed); opened != 0) close(opened - 1);
  }
}

bool PeerWatch::has_ended(std::uint32_t place) const {
  // Relaxed: a rank that has not yet said who it is counts as alive.
  const pid_t pid = segment_.rank(place).pid.load(std::memory_order_relaxed);
  // Ranks that are threads of this process (tests) live as long as it does.
  if (pid == 0 || pid == getpid()) return false;
  int handle = handles_[place].load(std::memory_order_acquire);
  if (handle == 0) {
    const int opened = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (opened < 0) return errno == ESRCH || (kill(pid, 0) != 0 && errno == ESRCH);
    if (handles_[place].compare_exchange_strong(handle, opened + 1, std::memory_order_acq_rel,
                                                std::memory_order_acquire)) {
      handle = opened + 1;
    } else {
      close(opened);  // another thread was quicker
    }
  }
  // Readable means that every thread of the process has ended, reaped by its parent or not: a death by half is none.
  pollfd query{handle - 1, POLLIN, 0};
  return poll(&query, 1, 0) == 1 && (query.revents & POLLIN) != 0;
}

bool PeerWatch::is_dead(std::uint32_t rank) const {
  if (rank == my_rank_) return false;
  if (!here_.is_here(rank)) return neighbours_.is_lost(rank);
  if (!has_ended(here_.place_of(rank))) return false;
  declare_dead(rank);
  return true;
}

std::uint32_t PeerWatch::declare_dead(std::uint32_t rank) const {
  std::uint32_t none = 0;
  // Release: whoever reads it needs nothing else from us; acquire on failure to return the first that was found.
  if (!segment_.failed_rank().compare_exchange_strong(none, rank + 1, std::memory_order_acq_rel,
                                                      std::memory_order_acquire)) {
    return none - 1;
  }
  for (std::uint32_t other = 0; other < segment_.ranks(); ++other) segment_.rank(other).waiters.notify_all();
  return rank;
}

std::uint32_t PeerWatch::known_dead() const { return segment_.failed_rank().load(std::memory_order_acquire); }

std::uint32_t PeerWatch::look() {
  if (const std::uint32_t known = known_dead(); known != 0) return known;
  for (const Rank rank : here_.ranks()) {
    if (is_dead(rank)) return known_dead();
  }
  return 0;
}

std::string PeerWatch::fate_of(std::uint32_t rank) const {
  if (here_.is_here(rank)) return Liveness::fate_of(rank);
  const std::optional<std::string> why = neighbours_.why_lost(rank);
  return fmt::format("rank {} of the job on host {} {}", rank, neighbours_.host_of(rank),
                     why ? "is lost: " + *why : "died");
}

}  // namespace farsum
