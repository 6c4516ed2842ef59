#include "transport/shm/segment_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "os/futex.hpp"
#include "os/memory_room.hpp"
#include "os/process.hpp"
#include "transport/shm/node_header.hpp"
#include "transport/shm/segment_map.hpp"

namespace farsum {
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

// The largest of the wished sizes that a limit on file size lets this process have. How much of it a process maps is
// its own affair.
std::uint64_t affordable_bytes(std::uint64_t wished) {
  std::uint64_t bytes = wished != 0 ? wished : std::uint64_t{1} << 40;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur);
  return bytes / page_bytes * page_bytes;
}

Status system_failure(const char* what) {
  return {Code::system, fmt::format("{} failed: {}", what, std::strerror(errno))};
}

// Every process of the node must find so many free addresses in one stretch. Each is laid out anew, and one that is
// watched by ThreadSanitizer has two stretches of 1.5 TiB, with its libraries or its program somewhere inside.
bool has_place_everywhere(std::uint64_t bytes) {
  constexpr std::uint64_t margin = 4;
  return SegmentMap::has_place(margin * bytes);
}

std::uint64_t file_bytes(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// Holds the file against others while it is initialised or left. The lock is of the open file, and each context opens
// one of its own: so ranks that are threads of one process exclude each other, too.
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
      result = fcntl(fd_, F_OFD_SETLKW, &region);
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

// Whether a rank left with memory of its program in the file.
bool keeps_memory(int fd) {
  std::uint32_t keeps = 0;
  return pread(fd, &keeps, sizeof keeps, offsetof(NodeHeader, keeps_memory)) == sizeof keeps && keeps != 0;
}

// Whether some rank has left the context that the file holds.
bool is_being_left(int fd) {
  std::uint32_t left = 0;
  return pread(fd, &left, sizeof left, offsetof(NodeHeader, left)) == sizeof left && left != 0;
}

// rank + 1 of one that joined the context in the file and died in it; 0 when all others live or have left.
std::uint32_t dead_before_leaving(int fd, std::uint32_t ranks) {
  std::uint32_t failed = 0;
  if (pread(fd, &failed, sizeof failed, offsetof(NodeHeader, failed_rank)) == sizeof failed && failed != 0)
    return failed;
  std::uint64_t blocks = 0;
  if (pread(fd, &blocks, sizeof blocks, offsetof(NodeHeader, rank_blocks)) != sizeof blocks) return 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<off_t>(blocks + rank * sizeof(RankBlock));
    std::uint32_t has_left = 0;
    std::int32_t pid = 0;
    if (pread(fd, &has_left, sizeof has_left, at + static_cast<off_t>(offsetof(RankBlock, left))) != sizeof has_left)
      return 0;
    if (pread(fd, &pid, sizeof pid, at + static_cast<off_t>(offsetof(RankBlock, pid))) != sizeof pid) return 0;
    if (has_left == 0 && pid != 0 && os::process_has_ended(pid)) return rank + 1;
  }
  return 0;
}

// Called under a FileGuard, by the first that finds the file empty.
Status initialise(int fd, const SegmentFile::Options& options) {
  const SegmentShape shape = shape_for(options.ranks, options.team_bytes);
  std::uint64_t wake_tag = 0;
  if (getrandom(&wake_tag, sizeof wake_tag, 0) != sizeof wake_tag) return system_failure("getrandom");
  std::uint64_t bytes = affordable_bytes(options.segment_bytes);
  const std::uint64_t least = shape.heap_begin + (std::uint64_t{1} << 24);
  void* base = MAP_FAILED;
  for (; bytes >= least; bytes = bytes / 2 / page_bytes * page_bytes) {
    errno = ENOMEM;
    if (!has_place_everywhere(bytes) || ftruncate(fd, static_cast<off_t>(bytes)) != 0) continue;
    base = mmap(nullptr, sizeof(NodeHeader), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    break;
  }
  if (base == MAP_FAILED) {
    return {Code::no_memory,
            fmt::format("cannot map {} bytes for the node's shared memory: {} (see ulimit -v and ulimit -f)", least,
                        std::strerror(errno))};
  }
  auto* header = static_cast<NodeHeader*>(base);
  header->segment_bytes = bytes;
  header->ranks = options.ranks;
  header->rank_blocks = shape.rank_blocks;
  header->channels = shape.channels;
  header->world_team = shape.world_team;
  header->heap_begin = shape.heap_begin;
  header->wake_tag = wake_tag;
  header->free_extents[0] = {shape.heap_begin, bytes - shape.heap_begin};
  header->free_count = 1;
  const std::uint64_t room = os::available({.root = "/", .count_address_space = false}).bytes;
  header->kept.set_most_bytes(KeptExtents::most_bytes_beside(room));
  header->magic = segment_magic;
  munmap(base, sizeof(NodeHeader));
  return {};
}

}  // namespace

Result<std::uint64_t> SegmentFile::prepare(int fd, const Options& options) {
  for (;;) {
    bool old = false;
    std::uint32_t dead = 0;
    {
      const FileGuard guard(fd);
      if (!guard.held()) return system_failure("locking the node's shared memory");
      old = file_bytes(fd) != 0 && is_being_left(fd);
      if (old && keeps_memory(fd)) {
        return Status(
            Code::system,
            "the context before this one left user memory promoted, for threads of the program were running that could "
            "not be held when it was to be turned back; there can be no further context in this job "
            "(FARSUM_PROMOTION=refuse avoids it)");
      }
      if (old) {
        dead = dead_before_leaving(fd, options.ranks);
      } else if (file_bytes(fd) == 0) {
        if (Status status = initialise(fd, options); !status.is_ok()) return status;
      }
    }
    if (!old) return file_bytes(fd);
    if (dead != 0) {
      return Status(Code::peer_failed,
                    fmt::format("rank {} of the job died before it had left the context before this one", dead - 1));
    }
    // The ranks that still use the context before this one are on their way out; the last of them empties the file.
    sleep_ns(200'000);
  }
}

SegmentFile::~SegmentFile() { close(fd_); }

std::uint64_t SegmentFile::resident_bytes() const {
  struct stat status {};
  return fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

std::optional<std::uint64_t> SegmentFile::read_word(std::uint64_t offset) const {
  std::uint64_t word = 0;
  if (pread(fd_, &word, sizeof word, static_cast<off_t>(offset)) != sizeof word) return std::nullopt;
  return word;
}

void SegmentFile::write_word(std::uint64_t offset, std::uint64_t word) {
  // Can only fail where the file is shorter, and then nobody waits for the word.
  [[maybe_unused]] const ssize_t written = pwrite(fd_, &word, sizeof word, static_cast<off_t>(offset));
}

void SegmentFile::punch(HeapExtent extent) {
  // If the system refuses the hole the zeros are written.
  if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset),
                static_cast<off_t>(extent.bytes)) == 0)
    return;
  static constexpr std::array<std::byte, 4 * page_bytes> zeros{};
  for (std::uint64_t done = 0; done < extent.bytes;) {
    const ssize_t written = pwrite(fd_, zeros.data(), std::min<std::uint64_t>(zeros.size(), extent.bytes - done),
                                   static_cast<off_t>(extent.offset + done));
    if (written <= 0) return;
    done += static_cast<std::uint64_t>(written);
  }
}

void SegmentFile::leave(NodeHeader& header, RankBlock& mine, bool keeps_memory) {
  // It leaves under the file's lock, so that nobody who comes for the next context sees it half left.
  const FileGuard guard(fd_);
  // Relaxed: the guard orders it.
  mine.left.store(1, std::memory_order_relaxed);
  if (keeps_memory) header.keeps_memory.store(1, std::memory_order_relaxed);
  const bool last = header.left.fetch_add(1, std::memory_order_acq_rel) + 1 == header.ranks;
  if (last && header.keeps_memory.load(std::memory_order_relaxed) == 0) empty_file(fd_);
}

}  // namespace farsum
