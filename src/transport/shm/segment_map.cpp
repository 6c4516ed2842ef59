#include "transport/shm/segment_map.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "os/memory_map.hpp"
#include "os/memory_room.hpp"

namespace farsum {
namespace {

// One growth takes at most one part in so many of a limit on address space.
constexpr std::uint64_t steps_in_limit = 64;
// What a program has, no more: above lies what some kernels give to who asks for it by name.
constexpr std::uintptr_t last_address = std::uintptr_t{1} << 47;

constexpr int most_attempts = 8;

struct Gap {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t bytes() const { return end - begin; }
};

// The gaps between what is mapped, the highest first. None that a stack may grow into.
std::vector<Gap> find_gaps() {
  std::vector<Gap> gaps;
  std::uintptr_t end_before = 0;
  for (const os::Map& map : os::read_maps()) {
    if (end_before != 0 && map.begin > end_before && map.begin <= last_address && map.name != "[stack]")
      gaps.push_back({end_before, map.begin});
    end_before = map.end;
  }
  std::reverse(gaps.begin(), gaps.end());
  return gaps;
}

// A place that leaves a quarter of its gap above, where the kernel puts what the program maps from here on; such a gap
// is looked for first. Two segments of a process as long as each other never come to lie over each other: in what is
// left above one the second finds its place above it, or it is too short.
std::uintptr_t find_place(std::uint64_t bytes) {
  const std::vector<Gap> gaps = find_gaps();
  const auto on_boundary = [](std::uintptr_t address) { return address & ~(SegmentMap::granule_bytes - 1); };
  for (const Gap& gap : gaps) {
    if (gap.bytes() / 4 >= bytes) return on_boundary(gap.end - gap.bytes() / 4 - bytes);
  }
  for (const Gap& gap : gaps) {
    if (gap.bytes() >= bytes + SegmentMap::granule_bytes) return on_boundary(gap.end - bytes);
  }
  return 0;
}

}  // namespace

bool SegmentMap::has_place(std::uint64_t bytes) {
  const std::vector<Gap> gaps = find_gaps();
  return std::any_of(gaps.begin(), gaps.end(), [bytes](const Gap& gap) { return gap.bytes() >= bytes; });
}

Result<std::unique_ptr<SegmentMap>> SegmentMap::make(int fd, std::uint64_t bytes) {
  for (int attempt = 0;; ++attempt) {
    const std::uintptr_t place = find_place(round_up(bytes, granule_bytes));
    if (place == 0) {
      return Status(Code::no_memory,
                    fmt::format("the process has no {} free addresses in one stretch for the node's shared memory "
                                "(FARSUM_SEGMENT_BYTES sets its size)",
                                bytes));
    }
    std::unique_ptr<SegmentMap> map(new SegmentMap(fd, reinterpret_cast<std::byte*>(place), bytes));
    Status status = map->reach(0, 1);
    if (status.is_ok()) return map;
    // Another thread may have mapped something there since.
    if (attempt == most_attempts) return status;
  }
}

SegmentMap::SegmentMap(int fd, std::byte* begin, std::uint64_t bytes)
    : fd_(fd),
      begin_(begin),
      bytes_(bytes),
      granules_((bytes + granule_bytes - 1) / granule_bytes),
      maps_exactly_(os::locked_bytes() != 0),
      reached_((granules_ + word_bits - 1) / word_bits) {}

SegmentMap::~SegmentMap() { leave(0, granules_ * granule_bytes); }

// The last granule may be longer than the file.
std::uint64_t SegmentMap::bytes_of(Run run) const {
  return std::min(run.end * granule_bytes, round_up(bytes_, page_bytes)) - run.first * granule_bytes;
}

std::uint64_t SegmentMap::mapped_bytes() const {
  const MutexGuard lock(mutex_);
  std::uint64_t bytes = 0;
  for (Run run = next_run({0, granules_}, true); !run.is_empty(); run = next_run({run.end, granules_}, true))
    bytes += bytes_of(run);
  return bytes;
}

// The limit may have been lowered since the last growth.
std::uint64_t SegmentMap::step_bytes() {
  rlimit limit{};
  const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  is_limited_.store(is_limited, std::memory_order_relaxed);
  if (maps_exactly()) return granule_bytes;
  if (!is_limited) return most_step_bytes;
  return std::clamp(std::bit_floor<std::uint64_t>(limit.rlim_cur / steps_in_limit), granule_bytes, most_step_bytes);
}

// The first run of granules that are all mapped, or all not.
SegmentMap::Run SegmentMap::next_run(Run within, bool mapped) const {
  while (!within.is_empty() && has(within.first) != mapped) {
    const bool is_whole_word_empty = mapped && reached_[within.first / word_bits].load(std::memory_order_relaxed) == 0;
    within.first = is_whole_word_empty ? (within.first / word_bits + 1) * word_bits : within.first + 1;
  }
  if (within.is_empty()) return {within.end, within.end};
  Run run{within.first, within.first + 1};
  while (run.end < within.end && has(run.end) == mapped) ++run.end;
  return run;
}

Status SegmentMap::map_missing(std::uint64_t offset, std::uint64_t bytes) {
  const MutexGuard lock(mutex_);
  const std::uint64_t end = std::min((offset + bytes - 1) / granule_bytes + 1, granules_);
  for (Run missing = next_run({offset / granule_bytes, end}, false); !missing.is_empty();
       missing = next_run({missing.end, end}, false)) {
    if (Status status = map_run(missing); !status.is_ok()) return status;
  }
  return {};
}

// A run up to the boundaries of steps, as far as nothing is mapped there.
SegmentMap::Run SegmentMap::widened(Run missing, std::uint64_t step) const {
  const std::uint64_t in_step = step / granule_bytes;
  const std::uint64_t first = missing.first / in_step * in_step;
  const std::uint64_t end = std::min(round_up(missing.end, in_step), granules_);
  while (missing.first > first && !has(missing.first - 1)) --missing.first;
  while (missing.end < end && !has(missing.end)) ++missing.end;
  return missing;
}

Status SegmentMap::map_run(Run missing) {
  int error_number = 0;
  Run run{};
  for (std::uint64_t step = step_bytes(); step >= granule_bytes; step /= 2) {
    run = widened(missing, step);
    error_number = try_to_map(run);
    if (error_number == 0) break;
  }
  if (error_number != 0) {
    const bool is_taken = error_number == EEXIST;
    return {Code::no_memory,
            fmt::format("cannot map {} bytes of the node's shared memory at {}: {}", bytes_of(missing),
                        static_cast<const void*>(begin_ + missing.first * granule_bytes),
                        is_taken ? "the program has something else there"
                                 : fmt::format("{} (see ulimit -v and ulimit -l)", std::strerror(error_number)))};
  }
  for (std::uint64_t word = run.first / word_bits; word <= (run.end - 1) / word_bits; ++word) {
    // Release pairs with the acquire in is_reached.
    reached_[word].fetch_or(bits_of(word, run.first, run.end - 1), std::memory_order_release);
  }
  return {};
}

// Returns 0 or an errno.
int SegmentMap::try_to_map(Run run) {
  std::byte* const wanted = begin_ + run.first * granule_bytes;
  const std::uint64_t bytes = bytes_of(run);
  void* const mapped = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                            fd_, static_cast<off_t>(run.first * granule_bytes));
  if (mapped == MAP_FAILED) return errno;
  if (mapped != wanted) {
    // Before Linux 4.17 the address is a wish.
    munmap(mapped, bytes);
    return EEXIST;
  }
  // A core file would otherwise fault in, and hold, what lies there; and with it neighbours become one map.
  madvise(mapped, bytes, MADV_DONTDUMP);
  return 0;
}

// Where the process has no maps left to cut one in two, all stays.
void SegmentMap::unmap(Run run) {
  if (munmap(begin_ + run.first * granule_bytes, bytes_of(run)) != 0) return;
  for (std::uint64_t word = run.first / word_bits; word <= (run.end - 1) / word_bits; ++word) {
    // Relaxed: who comes here next asks under the mutex.
    reached_[word].fetch_and(~bits_of(word, run.first, run.end - 1), std::memory_order_relaxed);
  }
}

void SegmentMap::leave(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = (offset + bytes) / granule_bytes;
  const MutexGuard lock(mutex_);
  for (Run run = next_run({(offset + granule_bytes - 1) / granule_bytes, end}, true); !run.is_empty();
       run = next_run({run.end, end}, true))
    unmap(run);
}

}  // namespace farsum
