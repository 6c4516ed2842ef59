// Knows which ranks of the node are alive. The first to notice a death records it in the node segment, so that
// everybody who waits learns of it, whoever they wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/atomicity.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

// Any thread may call.
class PeerWatch : public Liveness {
 public:
  PeerWatch(NodeSegment& segment, std::uint32_t my_rank)
      : segment_(segment), my_rank_(my_rank), handles_(segment.ranks()) {}
  ~PeerWatch() override;
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Records what it finds.
  bool is_dead(std::uint32_t rank) const override;
  std::uint32_t declare_dead(std::uint32_t rank) const override;
  // Looks at every rank; returns rank + 1 of the one that was found dead first, or 0.
  std::uint32_t look();
  // What is known already, without looking: rank + 1 or 0.
  std::uint32_t known_dead() const;

 private:
  bool has_ended(std::uint32_t rank) const;

  NodeSegment& segment_;
  std::uint32_t my_rank_;
  // A pidfd plus one per rank, opened at the first look after the rank has said who it is; 0 before.
  mutable std::vector<std::atomic<int>> handles_;
};

}  // namespace farsum
