// Knows which ranks of the job are alive: those of this node by their processes, those of others by what the network
// and their nodes tell. The first to notice a death records it in the node segment, so that everybody here who waits
// learns of it, whoever they wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/node_ranks.hpp"
#include "core/atomicity.hpp"
#include "runtime/neighbours.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

// Any thread may call. Ranks are those of the job.
class PeerWatch : public Liveness {
 public:
  PeerWatch(NodeSegment& segment, const NodeRanks& here, const Neighbours& neighbours, Rank my_rank)
      : segment_(segment), here_(here), neighbours_(neighbours), my_rank_(my_rank), handles_(segment.ranks()) {}
  ~PeerWatch() override;
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Records what it finds.
  bool is_dead(std::uint32_t rank) const override;
  std::uint32_t declare_dead(std::uint32_t rank) const override;
  std::string fate_of(std::uint32_t rank) const override;
  // Looks at every rank of this node; returns rank + 1 of the one that was found dead first, or 0.
  std::uint32_t look();
  // What is known already, without looking: rank + 1 or 0.
  std::uint32_t known_dead() const;

 private:
  bool has_ended(std::uint32_t place) const;

  NodeSegment& segment_;
  const NodeRanks& here_;
  const Neighbours& neighbours_;
  Rank my_rank_;
  // A pidfd plus one per rank of the node, opened at the first look after the rank has said who it is; 0 before.
  mutable std::vector<std::atomic<int>> handles_;
};

}  // namespace farsum
