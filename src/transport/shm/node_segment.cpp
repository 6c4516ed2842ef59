#include "transport/shm/node_segment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/shm/node_header.hpp"

namespace farsum {

Result<std::unique_ptr<NodeSegment>> NodeSegment::open(int fd, const Options& options) {
  Result<std::uint64_t> prepared = SegmentFile::prepare(fd, options);
  if (!prepared.is_ok()) return prepared.take_status();
  const std::uint64_t bytes = prepared.value();
  Result<std::unique_ptr<SegmentMap>> made = SegmentMap::make(fd, bytes);
  if (!made.is_ok()) return made.take_status();
  SegmentMap& map = *made.value();
  if (Status status = map.reach(0, sizeof(NodeHeader)); !status.is_ok()) return status;
  const auto* header = reinterpret_cast<const NodeHeader*>(map.begin());
  if (header->magic != segment_magic || header->ranks != options.ranks || header->segment_bytes != bytes) {
    return Status(Code::system,
                  "the node's shared memory was made by another version of Farsum or for another number of ranks");
  }
  // What all ranks write to of each other at any time.
  if (Status status = map.reach(0, header->heap_begin); !status.is_ok()) return status;
  return std::unique_ptr<NodeSegment>(new NodeSegment(fd, std::move(made.value()), bytes, options.ranks));
}

Result<std::unique_ptr<NodeSegment>> NodeSegment::create(const Options& options) {
  const int fd = memfd_create("farsum-node", MFD_CLOEXEC);
  if (fd < 0) return Status(Code::system, fmt::format("memfd_create failed: {}", std::strerror(errno)));
  Result<std::unique_ptr<NodeSegment>> segment = open(fd, options);
  if (!segment.is_ok()) close(fd);
  return segment;
}

NodeSegment::NodeSegment(int fd, std::unique_ptr<SegmentMap> map, std::uint64_t bytes, std::uint32_t ranks)
    : file_(fd, bytes),
      map_(std::move(map)),
      base_(map_->begin()),
      header_(*reinterpret_cast<NodeHeader*>(base_)),
      ranks_(ranks),
      lock_(header_.heap_lock, header_.heap_broken_by, {&rank(0), ranks}),
      heap_(lock_, {header_.allocated_bytes, FreeExtents(header_.free_count, header_.free_extents), header_.kept},
            file_, *map_),
      atomics_only_(lock_, header_.atomics_only_count, header_.atomics_only_extents),
      meetings_(lock_, header_.pending_extents, heap_) {}

Status NodeSegment::reach(HeapExtent extent) {
  if (extent.offset > bytes() || extent.bytes > bytes() - extent.offset) {
    return {Code::range, fmt::format("{} bytes at {} do not lie in the node's segment of {} bytes", extent.bytes,
                                     extent.offset, bytes())};
  }
  return map_->reach(extent.offset, extent.bytes);
}

void NodeSegment::leave_extent(HeapExtent extent) {
  if (would_leave(extent)) map_->leave(extent.offset, extent.bytes);
}

RankBlock& NodeSegment::rank(std::uint32_t local_rank) {
  return reinterpret_cast<RankBlock*>(base_ + header_.rank_blocks)[local_rank];
}

StripeLock* NodeSegment::stripes() { return header_.stripes; }

std::atomic<std::uint64_t>& NodeSegment::channel(std::uint32_t receiver, std::uint32_t sender) {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ +
                                                       header_.channels)[std::size_t{receiver} * ranks_ + sender];
}

std::atomic<std::uint32_t>& NodeSegment::failed_rank() { return header_.failed_rank; }
std::atomic<std::uint32_t>& NodeSegment::next_window_id() { return header_.next_window_id; }
std::uint64_t NodeSegment::wake_tag() const { return header_.wake_tag; }

std::byte* NodeSegment::world_team() { return base_ + header_.world_team; }

void NodeSegment::leave(std::uint32_t me, bool keeps_memory) { file_.leave(header_, rank(me), keeps_memory); }

void NodeSegment::leave_free_memory(std::uint32_t me, bool more_follows) {
  if (more_follows) map_->map_exactly();
  heap_.leave_free_memory(me);
}

}  // namespace farsum
