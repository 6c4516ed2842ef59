#include "promotion/touched_pages.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

// As in the kernel's linux/fs.h, which the C library of Debian 12 does not have.
struct ScanArguments {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t vec;
  std::uint64_t vec_len;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t is_present = 1u << 3;
constexpr std::uint64_t is_swapped = 1u << 4;
constexpr std::uint64_t is_zero_page = 1u << 5;
constexpr std::size_t region_words = 3;  // start, end, categories

// Of an entry of /proc/self/pagemap.
constexpr std::uint64_t entry_is_present = std::uint64_t{1} << 63;
constexpr std::uint64_t entry_is_swapped = std::uint64_t{1} << 62;

}  // namespace

TouchedPages::TouchedPages(Source best) : source_(best), page_(page_bytes()) {
  if (source_ != Source::none) fd_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) source_ = Source::none;
}

TouchedPages::~TouchedPages() {
  if (fd_ >= 0) close(fd_);
}

Stretch TouchedPages::look(const Stretch& stretch, Carrier carrier) {
  return carrier == Carrier::library ? look_with<LibraryCalls>(stretch) : look_with<KernelCalls>(stretch);
}

template <class Calls>
Stretch TouchedPages::look_with(const Stretch& stretch) {
  Stretch seen{stretch.begin, stretch.begin};
  count_ = 0;
  if (source_ == Source::scan) {
    if (scan<Calls>(stretch, seen)) return seen;
    source_ = Source::entries;
  }
  if (source_ == Source::entries) {
    if (read_entries<Calls>(stretch, seen)) return seen;
    source_ = Source::none;
  }
  count_ = 0;
  add(stretch);
  return stretch;
}

template <class Calls>
bool TouchedPages::scan(const Stretch& stretch, Stretch& seen) {
  ScanArguments arguments{};
  arguments.size = sizeof arguments;
  arguments.start = stretch.begin;
  arguments.end = stretch.end;
  arguments.vec = reinterpret_cast<std::uintptr_t>(answer_.data());
  arguments.vec_len = most_runs;
  arguments.category_inverted = is_zero_page;
  arguments.category_mask = is_zero_page;
  arguments.category_anyof_mask = is_present | is_swapped;
  // What is in memory and what is swapped out need not be told apart, but something has to be returned.
  arguments.return_mask = is_zero_page | is_present;
  long found = 0;
  do {
    found = Calls::control(fd_, pagemap_scan, &arguments);
  } while (found == -EINTR);
  if (found < 0 || static_cast<std::size_t>(found) > most_runs) return false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(found); ++i)
    add({answer_[region_words * i], answer_[region_words * i + 1]});
  seen.end = arguments.walk_end;
  return stretch.begin < seen.end && seen.end <= stretch.end;
}

template <class Calls>
bool TouchedPages::read_entries(const Stretch& stretch, Stretch& seen) {
  const std::size_t pages = std::min(stretch.bytes() / page_, most_entries);
  const long got =
      Calls::read_at(fd_, answer_.data(), pages * sizeof(std::uint64_t), stretch.begin / page_ * sizeof(std::uint64_t));
  if (got != static_cast<long>(pages * sizeof(std::uint64_t))) return false;
  std::size_t looked = 0;
  for (; looked < pages && count_ < most_runs; ++looked) {
    if ((answer_[looked] & (entry_is_present | entry_is_swapped)) == 0) continue;
    const std::uintptr_t at = stretch.begin + looked * page_;
    add({at, at + page_});
  }
  seen.end = stretch.begin + looked * page_;
  return true;
}

void TouchedPages::add(const Stretch& run) {
  if (count_ != 0 && runs_[count_ - 1].end == run.begin) {
    runs_[count_ - 1].end = run.end;
    return;
  }
  runs_[count_++] = run;
}

std::size_t TouchedPages::bytes_in(const Stretch& stretch) {
  std::size_t bytes = 0;
  for (Stretch left = stretch; !left.is_empty();) {
    left.begin = look(left).end;
    for (const Stretch& run : runs()) bytes += run.bytes();
  }
  return bytes;
}

}  // namespace farsum::os
