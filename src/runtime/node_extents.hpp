// Extents of the node segment that this rank, or the whole node, uses no more.
#pragma once

#include "protocol/exposure.hpp"
#include "runtime/own_node.hpp"

namespace farsum {

class NodeExtents {
 public:
  NodeExtents(OwnNode& node, const ExposureTable& exposures) : node_(node), exposures_(exposures) {}

  // Unmaps what this rank has mapped of an extent that it uses no more.
  void leave(HeapExtent extent);
  // The same of one that no rank uses any more; others may have it then.
  void give_back(HeapExtent extent);

 private:
  OwnNode& node_;
  const ExposureTable& exposures_;
};

}  // namespace farsum
