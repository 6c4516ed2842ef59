#include "runtime/node_extents.hpp"

#include <cstdint>

namespace farsum {

// Ranks that are threads of one process would unmap what the others still use; and what a window was made over stays as
// long as that window may be asked for it.
void NodeExtents::leave(HeapExtent extent) {
  NodeSegment& segment = node_.segment();
  if (!segment.would_leave(extent) || node_.shares_its_maps()) return;
  if (!exposures_.overlaps(reinterpret_cast<std::uintptr_t>(segment.at(extent.offset)), extent.bytes))
    segment.leave_extent(extent);
}

void NodeExtents::give_back(HeapExtent extent) {
  leave(extent);
  node_.segment().release(extent, node_.id_in_segment());
}

}  // namespace farsum
