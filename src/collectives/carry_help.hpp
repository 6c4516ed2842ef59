// What carrying needs of the process that its rank is in. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace farsum {

struct CarriedExtent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Any thread may call.
class CarryHelp {
 public:
  virtual ~CarryHelp() = default;
  // A stretch of the node segment, mapped here.
  virtual Status allocate(std::uint64_t bytes, CarriedExtent& extent) = 0;
  virtual void release(CarriedExtent extent) = 0;
  // Where it lies here; null where there is no room to map it.
  virtual std::byte* reach(CarriedExtent extent) = 0;
  // Has the agent of a member of this node take a turn.
  virtual void ring(std::uint32_t member_here) = 0;
  // What was sent to other nodes is looked after by the agent from now on.
  virtual void hand_over() = 0;
  // So many more calls of this process, or less, want turns of its agent.
  virtual void count_under_way(int more) = 0;
};

}  // namespace farsum
