#include "transport/shm/node_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "os/futex.hpp"
#include "os/memory_room.hpp"
#include "os/process.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t segment_magic = 0x4641'5253'554d'0001;  // "FARSUM", layout 1
constexpr std::uint32_t most_free_extents = 16384;
// Extents up to this keep their pages when they are given back: the next small window needs no page faults.
constexpr std::uint64_t keep_pages_bytes = 262144;

// The stripes of core/atomicity.hpp, which this folder does not see.
constexpr std::uint64_t aligned_from_bytes = 16384;
constexpr std::uint32_t most_bare_extents = 1024;
constexpr std::uint32_t most_meetings = 256;

// An extent that several ranks are about to share. Free when expected is 0.
struct Meeting {
  std::uint64_t key[2];
  std::uint32_t expected;
  std::uint32_t arrived;
  HeapExtent extent;
};

}  // namespace

struct NodeHeader {
  // Written once by whoever initialises.
  std::uint64_t magic;
  std::uint64_t segment_bytes;
  std::uint32_t ranks;
  std::uint64_t rank_blocks;
  std::uint64_t channels;
  std::uint64_t heap_begin;

  std::atomic<std::uint32_t> failed_rank;
  std::atomic<std::uint32_t> next_window_id;
  std::uint64_t world_team;
  // Ranks that have left this context; read through the file by who waits for a next one.
  std::atomic<std::uint32_t> left;
  // rank + 1 of one that died while it changed the heap, which nobody may use any more. Written under heap_lock.
  std::atomic<std::uint32_t> heap_broken_by;

  // Guards what follows. A rank that dies inside ends the job; nobody repairs the heap.
  alignas(cache_line_bytes) StripeLock heap_lock;
  std::uint64_t heap_end;  // never allocated beyond this
  std::atomic<std::uint64_t> allocated_bytes;  // read without the lock, for room(): relaxed
  std::uint32_t free_count;
  HeapExtent free_extents[most_free_extents];  // sorted by offset, none touching another
  std::uint32_t bare_count;
  HeapExtent bare_extents[most_bare_extents];
  Meeting meetings[most_meetings];

  alignas(cache_line_bytes) StripeLock stripes[node_stripes];
};

namespace {

struct SegmentShape {
  std::uint64_t rank_blocks = 0;
  std::uint64_t channels = 0;
  std::uint64_t world_team = 0;
  std::uint64_t heap_begin = 0;
};

SegmentShape shape_for(std::uint32_t ranks, std::uint64_t team_bytes) {
  SegmentShape shape;
  shape.rank_blocks = round_up(sizeof(NodeHeader), page_bytes);
  shape.channels = round_up(shape.rank_blocks + std::uint64_t{ranks} * sizeof(RankBlock), page_bytes);
  shape.world_team = round_up(shape.channels + std::uint64_t{ranks} * ranks * sizeof(std::uint64_t), page_bytes);
  shape.heap_begin = round_up(shape.world_team + team_bytes, page_bytes);
  return shape;
}

// The largest of the wished sizes that file size and address space limits let this process have.
std::uint64_t affordable_bytes(std::uint64_t wished) {
  std::uint64_t bytes = wished != 0 ? wished : std::uint64_t{1} << 40;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur / 2);
  }
  return bytes / page_bytes * page_bytes;
}

Status system_failure(const char* what) { return {Code::system, fmt::format("{} failed: {}", what, std::strerror(errno))}; }

void* map(int fd, std::uint64_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
}

std::uint64_t file_bytes(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

namespace {

// Holds the file, against other processes, while it is initialised or left. A lock of the process and not of the descriptor (flock):
// ranks inherit one descriptor from the launcher, and what belongs to that all of them hold at once.
class FileGuard {
 public:
  explicit FileGuard(int fd) : fd_(fd), held_(set(F_WRLCK)) {}
  ~FileGuard() {
    if (held_) set(F_UNLCK);
  }
  FileGuard(const FileGuard&) = delete;
  FileGuard& operator=(const FileGuard&) = delete;
  bool held() const { return held_; }

 private:
  bool set(int kind) const {
    struct flock region {};
    region.l_type = static_cast<short>(kind);
    region.l_whence = SEEK_SET;
    int result = -1;
    do {
      result = fcntl(fd_, F_SETLKW, &region);
    } while (result != 0 && errno == EINTR);
    return result == 0;
  }
  int fd_;
  bool held_;
};

void empty_file(int fd) {
  // Cannot fail on a memfd without seals; if it did, the next context would wait, not break.
  [[maybe_unused]] const int result = ftruncate(fd, 0);
}

// Whether some rank has left the context that the file holds.
bool is_being_left(int fd) {
  std::uint32_t left = 0;
  return pread(fd, &left, sizeof left, offsetof(NodeHeader, left)) == sizeof left && left != 0;
}

// rank + 1 of one that joined the context in the file and died in it; 0 when all others live or have left.
std::uint32_t dead_before_leaving(int fd, std::uint32_t ranks) {
  std::uint32_t failed = 0;
  if (pread(fd, &failed, sizeof failed, offsetof(NodeHeader, failed_rank)) == sizeof failed && failed != 0) return failed;
  std::uint64_t blocks = 0;
  if (pread(fd, &blocks, sizeof blocks, offsetof(NodeHeader, rank_blocks)) != sizeof blocks) return 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<off_t>(blocks + rank * sizeof(RankBlock));
    std::uint32_t has_left = 0;
    std::int32_t pid = 0;
    if (pread(fd, &has_left, sizeof has_left, at + static_cast<off_t>(offsetof(RankBlock, left))) != sizeof has_left) return 0;
    if (pread(fd, &pid, sizeof pid, at + static_cast<off_t>(offsetof(RankBlock, pid))) != sizeof pid) return 0;
    if (has_left == 0 && pid != 0 && os::process_has_ended(pid)) return rank + 1;
  }
  return 0;
}

}  // namespace

// Called under a FileGuard, by the first that finds the file empty.
Status NodeSegment::initialise(int fd, const Options& options) {
  const SegmentShape shape = shape_for(options.ranks, options.team_bytes);
  std::uint64_t bytes = affordable_bytes(options.segment_bytes);
  const std::uint64_t least = shape.heap_begin + (std::uint64_t{1} << 24);
  void* base = MAP_FAILED;
  for (; bytes >= least; bytes = bytes / 2 / page_bytes * page_bytes) {
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) continue;
    base = map(fd, bytes);
    if (base != MAP_FAILED) break;
  }
  if (base == MAP_FAILED) {
    return {Code::no_memory, fmt::format("cannot map {} bytes for the node's shared memory: {} (see ulimit -v and ulimit -f)", least,
                                         std::strerror(errno))};
  }
  auto* header = static_cast<NodeHeader*>(base);
  header->segment_bytes = bytes;
  header->ranks = options.ranks;
  header->rank_blocks = shape.rank_blocks;
  header->channels = shape.channels;
  header->world_team = shape.world_team;
  header->heap_begin = shape.heap_begin;
  header->heap_end = bytes;
  header->free_extents[0] = {shape.heap_begin, bytes - shape.heap_begin};
  header->free_count = 1;
  header->magic = segment_magic;
  munmap(base, bytes);
  return {};
}

Result<std::unique_ptr<NodeSegment>> NodeSegment::open(int fd, const Options& options) {
  for (;;) {
    bool old = false;
    std::uint32_t dead = 0;
    {
      const FileGuard guard(fd);
      if (!guard.held()) return system_failure("locking the node's shared memory");
      old = file_bytes(fd) != 0 && is_being_left(fd);
      if (old) {
        dead = dead_before_leaving(fd, options.ranks);
      } else if (file_bytes(fd) == 0) {
        if (Status status = initialise(fd, options); !status.is_ok()) return status;
      }
    }
    if (!old) break;
    if (dead != 0) {
      return Status(Code::peer_failed, fmt::format("rank {} of the job died before it had left the context before this one", dead - 1));
    }
    // The ranks that still use the context before this one are on their way out; the last of them empties the file.
    sleep_ns(200'000);
  }

  const std::uint64_t bytes = file_bytes(fd);
  void* base = map(fd, bytes);
  if (base == MAP_FAILED) {
    return Status(Code::no_memory, fmt::format("cannot map the node's {} bytes of shared memory: {} (see ulimit -v)", bytes,
                                               std::strerror(errno)));
  }
  // A core file would otherwise fault in, and hold, the whole segment.
  madvise(base, bytes, MADV_DONTDUMP);
  const auto* header = static_cast<const NodeHeader*>(base);
  if (header->magic != segment_magic || header->ranks != options.ranks || header->segment_bytes != bytes) {
    munmap(base, bytes);
    return Status(Code::system, "the node's shared memory was made by another version of Farsum or for another number of ranks");
  }
  return std::unique_ptr<NodeSegment>(new NodeSegment(fd, static_cast<std::byte*>(base), bytes, options.ranks));
}

Result<std::unique_ptr<NodeSegment>> NodeSegment::create(const Options& options) {
  const int fd = memfd_create("farsum-node", MFD_CLOEXEC);
  if (fd < 0) return system_failure("memfd_create");
  Result<std::unique_ptr<NodeSegment>> segment = open(fd, options);
  if (!segment.is_ok()) close(fd);
  return segment;
}

NodeSegment::~NodeSegment() {
  munmap(base_, bytes_);
  close(fd_);
}

NodeHeader& NodeSegment::header() const { return *reinterpret_cast<NodeHeader*>(base_); }

RankBlock& NodeSegment::rank(std::uint32_t local_rank) {
  return reinterpret_cast<RankBlock*>(base_ + header().rank_blocks)[local_rank];
}

StripeLock* NodeSegment::stripes() { return header().stripes; }

std::atomic<std::uint64_t>& NodeSegment::channel(std::uint32_t receiver, std::uint32_t sender) {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + header().channels)[std::size_t{receiver} * ranks_ + sender];
}

std::atomic<std::uint32_t>& NodeSegment::failed_rank() { return header().failed_rank; }
std::atomic<std::uint32_t>& NodeSegment::next_window_id() { return header().next_window_id; }
std::byte* NodeSegment::world_team() { return base_ + header().world_team; }

bool NodeSegment::contains(const void* address, std::uint64_t bytes) const {
  const auto* first = static_cast<const std::byte*>(address);
  return first >= base_ && first < base_ + bytes_ && bytes <= static_cast<std::uint64_t>(base_ + bytes_ - first);
}

namespace {

bool is_gone(NodeSegment& segment, std::uint32_t holder) {
  // Relaxed: written before the rank could take a lock.
  const std::int32_t pid = segment.rank(holder - 1).pid.load(std::memory_order_relaxed);
  return pid != 0 && pid != getpid() && os::process_has_ended(pid);
}

}  // namespace

// Holds the heap's lock. The lock of a holder that died is taken over so that the others can end in order, but what it guards
// may be half changed, and is left alone from then on.
class NodeSegment::HeapGuard {
 public:
  HeapGuard(NodeSegment& segment, std::uint32_t me) : header_(segment.header()) {
    StripeLock& lock = header_.heap_lock;
    while (!lock.acquire(me, [&segment](std::uint32_t holder) { return is_gone(segment, holder); })) {
      const std::uint32_t holder = lock.holder();
      if (holder == 0 || !is_gone(segment, holder) || !lock.break_dead(holder, me)) continue;
      // Relaxed: the lock orders it.
      header_.heap_broken_by.store(holder, std::memory_order_relaxed);
      return;
    }
  }
  ~HeapGuard() { header_.heap_lock.release(); }
  HeapGuard(const HeapGuard&) = delete;
  HeapGuard& operator=(const HeapGuard&) = delete;
  bool usable() const { return header_.heap_broken_by.load(std::memory_order_relaxed) == 0; }
  Status refusal() const {
    return {Code::peer_failed, fmt::format("rank {} of the job died while it changed the node's heap of shared memory",
                                           header_.heap_broken_by.load(std::memory_order_relaxed) - 1)};
  }

 private:
  NodeHeader& header_;
};

StripeLock& NodeSegment::heap_lock() { return header().heap_lock; }

NodeSegment::Room NodeSegment::room() {
  const os::MemoryRoom room = os::available({.root = "/", .count_address_space = false});
  struct stat status {};
  const std::uint64_t touched = fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
  // What was promised and not yet touched is still in the system's count of free memory.
  const std::uint64_t promised = allocated_bytes();
  const std::uint64_t owed = promised > touched ? promised - touched : 0;
  return {room.bytes > owed ? room.bytes - owed : 0, fmt::format("{} ({})", os::name_of(room.bound), room.where)};
}

std::uint64_t NodeSegment::allocated_bytes() const { return header().allocated_bytes.load(std::memory_order_relaxed); }

Result<HeapExtent> NodeSegment::allocate(std::uint64_t bytes, std::uint32_t me) {
  if (bytes > bytes_) {
    return Status(Code::no_memory, fmt::format("asked for {} bytes of shared memory, but the node's segment has {} bytes in all", bytes,
                                               bytes_));
  }
  const std::uint64_t wanted = std::max(round_up(bytes, page_bytes), page_bytes);
  // Small requests are not worth reading /proc for.
  if (wanted > keep_pages_bytes) {
    const Room available = room();
    if (wanted > available.bytes) {
      return Status(Code::no_memory, fmt::format("asked for {} bytes of shared memory, but {} bytes are available, bounded by {}", wanted,
                                                 available.bytes, available.bound));
    }
  }
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return guard.refusal();
  // Large extents start on a stripe's boundary, so that what is aligned inside them is aligned to the stripes of the node's table.
  const std::uint64_t alignment = wanted >= aligned_from_bytes ? aligned_from_bytes : page_bytes;
  for (std::uint32_t i = 0; i < shared.free_count; ++i) {
    const HeapExtent whole = shared.free_extents[i];
    const std::uint64_t start = round_up(whole.offset, alignment);
    const std::uint64_t gap = start - whole.offset;
    if (whole.bytes < gap + wanted || (gap != 0 && shared.free_count == most_free_extents)) continue;
    const HeapExtent rest{start + wanted, whole.bytes - gap - wanted};
    HeapExtent* const here = &shared.free_extents[i];
    HeapExtent* const end = &shared.free_extents[shared.free_count];
    if (gap != 0 && rest.bytes != 0) {
      std::copy_backward(here + 1, end, end + 1);
      ++shared.free_count;
      here[0] = {whole.offset, gap};
      here[1] = rest;
    } else if (gap != 0 || rest.bytes != 0) {
      *here = gap != 0 ? HeapExtent{whole.offset, gap} : rest;
    } else {
      std::copy(here + 1, end, here);
      --shared.free_count;
    }
    shared.allocated_bytes.fetch_add(wanted, std::memory_order_relaxed);
    return HeapExtent{start, wanted};
  }
  return Status(Code::no_memory, fmt::format("asked for {} bytes of shared memory, but the node's segment of {} bytes has no such "
                                             "stretch left (FARSUM_SEGMENT_BYTES sets its size)", wanted, bytes_));
}

void NodeSegment::punch(HeapExtent extent) const {
  // Free memory reads as zeros. If the system refuses the hole the zeros are written.
  if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset), static_cast<off_t>(extent.bytes)) != 0) {
    std::memset(base_ + extent.offset, 0, extent.bytes);
  }
}

void NodeSegment::release(HeapExtent extent, std::uint32_t me) {
  if (extent.bytes == 0) return;
  if (extent.bytes > keep_pages_bytes) {
    punch(extent);
  } else {
    std::memset(base_ + extent.offset, 0, extent.bytes);
  }
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return;
  shared.allocated_bytes.fetch_sub(extent.bytes, std::memory_order_relaxed);
  HeapExtent* const begin = shared.free_extents;
  HeapExtent* const end = begin + shared.free_count;
  HeapExtent* after = std::upper_bound(begin, end, extent.offset,
                                       [](std::uint64_t offset, const HeapExtent& other) { return offset < other.offset; });
  const bool joins_before = after != begin && (after - 1)->offset + (after - 1)->bytes == extent.offset;
  const bool joins_after = after != end && extent.offset + extent.bytes == after->offset;
  if (joins_before) {
    (after - 1)->bytes += extent.bytes;
    if (joins_after) {
      (after - 1)->bytes += after->bytes;
      std::copy(after + 1, end, after);
      --shared.free_count;
    }
  } else if (joins_after) {
    after->offset = extent.offset;
    after->bytes += extent.bytes;
  } else if (shared.free_count < most_free_extents) {
    std::copy_backward(after, end, end + 1);
    *after = extent;
    ++shared.free_count;
  }
  // A full table loses the stretch of address space, not memory: its pages are zero or gone.
}

Result<HeapExtent> NodeSegment::meet(const MeetingKey& key, std::uint32_t expected, std::uint64_t bytes, std::uint32_t me) {
  HeapExtent spare;
  const auto join = [&]() -> HeapExtent {
    const HeapGuard guard(*this, me);
    if (!guard.usable()) return {};
    Meeting* vacant = nullptr;
    for (Meeting& meeting : header().meetings) {
      if (meeting.expected == 0) {
        vacant = vacant == nullptr ? &meeting : vacant;
        continue;
      }
      if (meeting.key[0] != key.words[0] || meeting.key[1] != key.words[1] || meeting.expected != expected) continue;
      if (++meeting.arrived == meeting.expected) meeting.expected = 0;
      return meeting.extent;
    }
    if (spare.bytes == 0 || vacant == nullptr) return {};
    *vacant = {{key.words[0], key.words[1]}, expected == 1 ? 0 : expected, 1, spare};
    return std::exchange(spare, {});
  };
  HeapExtent extent = join();
  if (extent.bytes == 0) {
    Result<HeapExtent> made = allocate(bytes, me);
    if (!made.is_ok()) return made;
    spare = made.value();
    extent = join();
    release(spare, me);  // somebody else was quicker
  }
  if (extent.bytes == 0) return Status(Code::no_memory, "too many groups are being made at once on this node");
  return extent;
}

bool NodeSegment::mark_bare(HeapExtent extent, std::uint32_t me) {
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable() || shared.bare_count == most_bare_extents) return false;
  shared.bare_extents[shared.bare_count++] = extent;
  return true;
}

void NodeSegment::unmark_bare(HeapExtent extent, std::uint32_t me) {
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  if (!guard.usable()) return;
  for (std::uint32_t i = 0; i < shared.bare_count; ++i) {
    if (shared.bare_extents[i].offset != extent.offset) continue;
    shared.bare_extents[i] = shared.bare_extents[--shared.bare_count];
    return;
  }
}

bool NodeSegment::overlaps_bare(std::uint64_t offset, std::uint64_t bytes, std::uint32_t me) {
  NodeHeader& shared = header();
  const HeapGuard guard(*this, me);
  return std::any_of(shared.bare_extents, shared.bare_extents + shared.bare_count, [&](const HeapExtent& extent) {
    return extent.offset < offset + bytes && offset < extent.offset + extent.bytes;
  });
}

void NodeSegment::leave(std::uint32_t me) {
  // Under the file's lock, so that nobody who comes for the next context sees it half left.
  const FileGuard guard(fd_);
  // Relaxed: the guard orders it.
  rank(me).left.store(1, std::memory_order_relaxed);
  if (header().left.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) empty_file(fd_);
}

}  // namespace farsum
