// Which extents of calls that are over a rank gives back, and when: what it has brought, and by which of a node's ranks
// the answer goes. Owner: collectives.
#pragma once

#include <atomic>
#include <vector>

#include "base/thread_mutex.hpp"
#include "collectives/carried_memory.hpp"
#include "collectives/carried_request.hpp"
#include "collectives/carry_help.hpp"

namespace farsum {

// One member's. Any thread may call.
class CarriedExtents {
 public:
  CarriedExtents(const CarriedMemory& memory, CarryHelp& help) : memory_(memory), help_(help) {}

  // Of a call that has been fetched and copied.
  void let_go(const CarriedRequest& request);
  // When no rank of the node does anything for the group any more: what could not be given back before.
  void give_back_kept();

 private:
  static void keep(std::vector<CarriedExtent>& among, const CarriedExtent& extent);
  bool count_fetched(const CarriedExtent& all);
  void count_fetched_again();

  const CarriedMemory& memory_;
  CarryHelp& help_;
  std::atomic<bool> has_uncounted_{false};
  ThreadMutex keeping_;
  // Of a broken group, whose other ranks may read them until its end.
  std::vector<CarriedExtent> kept_ FARSUM_GUARDED_BY(keeping_);
  std::vector<CarriedExtent> uncounted_ FARSUM_GUARDED_BY(keeping_);  // whose head could not be mapped
};

}  // namespace farsum
