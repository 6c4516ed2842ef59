#include "liveness/peer_watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "os/process.hpp"

namespace farsum {
namespace {

// The rest is the program's.
constexpr rlim_t share_of_descriptors = 4;

std::uint32_t descriptors_to_spare() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return most_node_ranks;
  return static_cast<std::uint32_t>(std::min<rlim_t>(limit.rlim_cur / share_of_descriptors, most_node_ranks));
}

}  // namespace

PeerWatch::PeerWatch(NodeSegment& segment, const NodeRanks& here, const RemoteNodes& remote_nodes, Rank my_rank)
    : segment_(segment),
      here_(here),
      remote_nodes_(remote_nodes),
      my_rank_(my_rank),
      handles_(segment.ranks()),
      most_handles_(descriptors_to_spare()),
      is_watched_(segment.ranks()) {}

PeerWatch::~PeerWatch() {
  if (watched_ >= 0) close(watched_);
  for (const std::atomic<int>& handle : handles_) {
    if (const int opened = handle.load(std::memory_order_relaxed); opened != 0) close(opened - 1);
  }
}

int PeerWatch::handle_of(std::uint32_t place, pid_t pid) const {
  int handle = handles_[place].load(std::memory_order_acquire);
  // Relaxed: threads that come at once may open a few more.
  if (handle != 0 || handles_open_.load(std::memory_order_relaxed) >= most_handles_) return handle;
  const int opened = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (opened < 0) return 0;
  if (!handles_[place].compare_exchange_strong(handle, opened + 1, std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
    close(opened);  // another thread was quicker
    return handle;
  }
  handles_open_.fetch_add(1, std::memory_order_relaxed);
  return opened + 1;
}

bool PeerWatch::has_ended(std::uint32_t place) const {
  // Relaxed: a rank that has not yet said who it is counts as alive.
  const pid_t pid = segment_.rank(place).pid.load(std::memory_order_relaxed);
  // Ranks that are threads of this process (tests) live as long as it does.
  if (pid == 0 || pid == getpid()) return false;
  const int handle = handle_of(place, pid);
  if (handle == 0) return os::process_has_ended(pid) || (kill(pid, 0) != 0 && errno == ESRCH);
  // Readable means that every thread of the process has ended, reaped by its parent or not: a death by half is none.
  pollfd query{handle - 1, POLLIN, 0};
  return poll(&query, 1, 0) == 1 && (query.revents & POLLIN) != 0;
}

bool PeerWatch::is_dead(std::uint32_t rank) const {
  if (rank == my_rank_) return false;
  if (!here_.is_here(rank)) return remote_nodes_.is_lost(rank);
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

bool PeerWatch::watch(std::uint32_t place) {
  if (here_.ranks()[place] == my_rank_) return true;
  // Relaxed, and the ranks that never end before this one: as in has_ended().
  const pid_t pid = segment_.rank(place).pid.load(std::memory_order_relaxed);
  if (pid == 0) return false;
  if (pid == getpid()) return true;
  const int handle = handle_of(place, pid);
  epoll_event ended{};
  ended.events = EPOLLIN;
  ended.data.u32 = place;
  return handle != 0 && epoll_ctl(watched_, EPOLL_CTL_ADD, handle - 1, &ended) == 0;
}

void PeerWatch::begin_watching() {
  if (watched_ >= 0) close(watched_);
  watched_ = epoll_create1(EPOLL_CLOEXEC);
  watcher_ = getpid();
  std::fill(is_watched_.begin(), is_watched_.end(), false);
}

// Returns the descriptor, and how many ranks are not in it.
int PeerWatch::watch_all(std::uint32_t& left_out) {
  const std::lock_guard lock(watching_);
  if (watched_ < 0 || watcher_ != getpid()) begin_watching();
  left_out = here_.count();
  for (std::uint32_t place = 0; watched_ >= 0 && place < here_.count(); ++place) {
    if (!is_watched_[place]) is_watched_[place] = watch(place);
    if (is_watched_[place]) --left_out;
  }
  return watched_;
}

std::uint32_t PeerWatch::unwatched() {
  std::uint32_t left_out = 0;
  (void)watch_all(left_out);
  return left_out;
}

std::uint32_t PeerWatch::look() {
  if (const std::uint32_t known = known_dead(); known != 0) return known;
  std::uint32_t left_out = 0;
  const int watched = watch_all(left_out);
  epoll_event ended{};
  if (watched >= 0 && epoll_wait(watched, &ended, 1, 0) == 1 && is_dead(here_.ranks()[ended.data.u32]))
    return known_dead();
  if (left_out == 0) return 0;
  for (const Rank rank : here_.ranks()) {
    if (is_dead(rank)) return known_dead();
  }
  return 0;
}

std::string PeerWatch::fate_of(std::uint32_t rank) const {
  if (here_.is_here(rank)) return Liveness::fate_of(rank);
  const std::optional<std::string> why = remote_nodes_.why_lost(rank);
  return fmt::format("rank {} of the job on host {} {}", rank, remote_nodes_.host_of(rank),
                     why ? "is lost: " + *why : "died");
}

}  // namespace farsum
