#include "promotion/promoted_advice.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "os/raw_system.hpp"
#include "promotion/page_move.hpp"
#include "promotion/promoted_files.hpp"

namespace farsum::os {
namespace {

constexpr int dontneed_locked = 24;  // MADV_DONTNEED_LOCKED of Linux 5.18

bool discards(int advice) { return advice == MADV_DONTNEED || advice == dontneed_locked || advice == MADV_FREE; }

// A range from its beginning on, in the order in which the kernel goes: what is not mapped is passed over and told of
// at the end, any other error ends it.
class Discarding {
 public:
  Discarding(Stretch range, int advice, Madvise madvise_function)
      : range_(range), advice_(advice), madvise_(madvise_function), done_(range.begin) {}

  // False once it has failed.
  bool promoted(const Stretch& part, const PromotedFile& file, std::uint64_t file_offset) {
    if (!others_until(part.begin)) return false;
    done_ = part.end;
    if (madvise_(pointer(part.begin), part.bytes(), MADV_REMOVE) == 0) return true;
    // Locked memory is kept by MADV_REMOVE, and by older kernels what the program may not write to now.
    failed_ = errno;
    const bool is_kept = (advice_ == dontneed_locked && failed_ == EINVAL) || failed_ == EACCES;
    const bool is_gone = is_kept && fallocate(file.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                              static_cast<off_t>(file_offset), static_cast<off_t>(part.bytes())) == 0;
    if (is_gone) failed_ = 0;
    return is_gone;
  }

  bool others_until(std::uintptr_t end) {
    if (done_ >= end) return true;
    const bool is_done = madvise_(pointer(done_), end - done_, advice_) == 0;
    done_ = end;
    if (is_done) return true;
    if (errno == ENOMEM) {
      has_hole_ = true;
      return true;
    }
    failed_ = errno;
    return false;
  }

  int finish() {
    if (failed_ == 0) others_until(range_.end);
    if (failed_ == 0 && has_hole_) failed_ = ENOMEM;
    if (failed_ == 0) return 0;
    errno = failed_;
    return -1;
  }

 private:
  const Stretch range_;
  const int advice_;
  const Madvise madvise_;
  std::uintptr_t done_;
  bool has_hole_ = false;
  int failed_ = 0;
};

}  // namespace

int advise(void* address, std::size_t bytes, int advice, Madvise madvise_function) {
  const std::size_t page_mask = page_bytes() - 1;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + ((bytes + page_mask) & ~page_mask);
  // What the kernel refuses or has nothing to do for is its own to answer.
  if (!discards(advice) || promoted_files().empty() || (begin & page_mask) != 0 || end <= begin)
    return madvise_function(address, bytes, advice);
  const int errno_before = errno;
  Discarding discarding({begin, end}, advice, madvise_function);
  std::array<char, small_maps_buffer_bytes> buffer;
  MapWalk walk(buffer, has_raw_calls ? kernel_map_calls() : library_map_calls());
  BareMap map;
  for (std::uintptr_t at = begin; at < end && walk.next(at, map) && map.begin < end; at = map.end) {
    const std::optional<PromotedFile> file = promoted_files().file_of(map);
    if (!file) continue;
    const Stretch part{std::max(map.begin, begin), std::min(map.end, end)};
    if (!discarding.promoted(part, *file, map.file_offset + (part.begin - map.begin))) break;
  }
  const int result = discarding.finish();
  if (result == 0) errno = errno_before;
  return result;
}

}  // namespace farsum::os
