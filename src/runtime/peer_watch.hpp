// Knows which ranks of the node are alive. The first to notice a death records it in the node segment, so that everybody who waits
// learns of it, whoever they wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/atomicity.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

class PeerWatch : public Liveness {
 public:
  PeerWatch(NodeSegment& segment, std::uint32_t my_rank) : segment_(segment), my_rank_(my_rank) {}
  ~PeerWatch() override;
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Opens a handle on every rank's process; called when all have joined and are known to live.
  void open();
  bool is_dead(std::uint32_t rank) const override;
  // Looks at every rank; returns rank + 1 of one that died, or 0. Records and announces what it finds.
  std::uint32_t look();
  // What is known already, without looking: rank + 1 or 0.
  std::uint32_t known_dead() const;

 private:
  NodeSegment& segment_;
  std::uint32_t my_rank_;
  std::vector<int> handles_;  // pidfds; -1 for this process and where none could be had
};

}  // namespace farsum
