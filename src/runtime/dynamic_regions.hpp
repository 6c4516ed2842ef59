// Regions that come to a dynamic window and go: this rank's own table, which others may be reading meanwhile.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "liveness/peer_watch.hpp"
#include "protocol/exposure.hpp"
#include "runtime/memory_descriptions.hpp"
#include "runtime/node_extents.hpp"
#include "runtime/own_node.hpp"
#include "runtime/window_object.hpp"

namespace farsum {

// Any thread may call.
class DynamicRegions {
 public:
  struct Parts {
    OwnNode& node;
    const PeerWatch& watch;
    ExposureTable& exposures;
    const MemoryDescriptions& descriptions;
    NodeExtents& extents;
  };
  explicit DynamicRegions(const Parts& parts) : parts_(parts) {}

  Status attach(WindowObject& object, void* memory, std::uint64_t bytes);
  Status detach(WindowObject& object, const void* memory);

 private:
  Status make_room(WindowObject& object, std::uint64_t count);
  void publish(WindowObject& object, const DescribedMemory& all);
  void withdraw(WindowObject& object, std::uint64_t begin, std::uint64_t end);

  Parts parts_;
};

}  // namespace farsum
