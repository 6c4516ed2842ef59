// Knows which ranks of the job are alive: those of this node by their processes, those of others by what the network
// and their nodes tell. The first to notice a death records it in the node segment, so that everybody here who waits
// learns of it, whoever they wait for.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/node_ranks.hpp"
#include "liveness/remote_nodes.hpp"
#include "memory/atomicity.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

// Any thread may call. Ranks are those of the job.
class PeerWatch : public Liveness {
 public:
  PeerWatch(NodeSegment& segment, const NodeRanks& here, const RemoteNodes& remote_nodes, Rank my_rank);
  ~PeerWatch() override;
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Records what it finds.
  bool is_dead(std::uint32_t rank) const override;
  std::uint32_t declare_dead(std::uint32_t rank) const override;
  std::string fate_of(std::uint32_t rank) const override;
  // Looks at every rank of this node; returns rank + 1 of the one that was found dead first, or 0.
  std::uint32_t look();
  // Of the node's ranks, those that a look asks for one by one: they have not said who they are, or this process has
  // too few descriptors. For the others together a look is one system call.
  std::uint32_t unwatched();
  // What is known already, without looking: rank + 1 or 0.
  std::uint32_t known_dead() const;

 private:
  // A handle of the process, plus one; 0 where it has none, and this process can spare none.
  int handle_of(std::uint32_t place, pid_t pid) const;
  bool has_ended(std::uint32_t place) const;
  // Whether there is no need to ask for it alone from here on.
  bool watch(std::uint32_t place);
  void begin_watching();
  int watch_all(std::uint32_t& left_out);

  NodeSegment& segment_;
  const NodeRanks& here_;
  const RemoteNodes& remote_nodes_;
  Rank my_rank_;
  // A pidfd plus one per rank of the node, opened at the first look after the rank has said who it is; 0 before.
  mutable std::vector<std::atomic<int>> handles_;
  mutable std::atomic<std::uint32_t> handles_open_{0};
  std::uint32_t most_handles_;
  std::mutex watching_;  // guards what follows
  // All handles in one epoll descriptor, which shows what has ended to each look, not to the first alone; -1: none.
  int watched_ = -1;
  pid_t watcher_ = 0;  // a forked child makes one of its own
  std::vector<bool> is_watched_;
};

}  // namespace farsum
