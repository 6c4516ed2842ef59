// The file behind the node segment: who makes its head, who comes and who leaves, and what is read, written or given to
// the system without a mapping. It knows of the head and of the ranks' blocks, and nothing of the heap's books.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.hpp"
#include "transport/shm/heap_extent.hpp"
#include "transport/shm/rank_block.hpp"

namespace farsum {

struct NodeHeader;

class SegmentFile {
 public:
  struct Options {
    std::uint32_t ranks = 1;
    std::uint64_t segment_bytes = 0;  // 0: as much as the layout of processes and the limit on file size allow
    std::uint64_t team_bytes = 0;     // kept for the team of all ranks
  };

  // An empty memfd is initialised; whoever comes first does it. Where ranks still use the context before this one, it
  // waits until the last of them has left. Returns the file's bytes.
  static Result<std::uint64_t> prepare(int fd, const Options& options);

  // Takes the descriptor of a file that was prepared.
  SegmentFile(int fd, std::uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  int fd() const { return fd_; }
  std::uint64_t bytes() const { return bytes_; }
  // Bytes of it that have pages.
  std::uint64_t resident_bytes() const;
  // A word of the file, mapped or not; nothing where the file has none there. As an acquire load.
  std::optional<std::uint64_t> read_word(std::uint64_t offset) const;
  // Stores one there. As a release store.
  void write_word(std::uint64_t offset, std::uint64_t word);
  // Its pages go to the system, and it reads as zeros.
  void punch(HeapExtent extent);

  // The rank of this block is done with the context whose head it is. The last to leave empties the file, unless one
  // has left with memory of its program in it.
  void leave(NodeHeader& header, RankBlock& mine, bool keeps_memory);

 private:
  const int fd_;
  const std::uint64_t bytes_;
};

}  // namespace farsum
