// Transparent huge pages, for tests: memory that may have them, what of it lies on them, and whether this kernel gives
// any on demand.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "os/huge_page_advice.hpp"
#include "os/memory_map.hpp"

namespace farsum::test {

// Private memory that begins `past` bytes after a boundary of huge pages.
class PlacedMap {
 public:
  PlacedMap(std::size_t bytes, std::size_t past)
      : reserved_bytes_(bytes + 2 * huge_page_bytes + past),
        reserved_(mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    const auto begin = reinterpret_cast<std::uintptr_t>(reserved_);
    const std::uintptr_t boundary = (begin + huge_page_bytes) & ~(huge_page_bytes - 1);
    data_ = reinterpret_cast<std::byte*>(boundary + past);
    mprotect(data_, bytes, PROT_READ | PROT_WRITE);
  }
  ~PlacedMap() { munmap(reserved_, reserved_bytes_); }
  PlacedMap(const PlacedMap&) = delete;
  PlacedMap& operator=(const PlacedMap&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::size_t reserved_bytes_;
  void* reserved_;
  std::byte* data_;
};

// What the maps that overlap the range have on huge pages, private or shared.
inline std::size_t huge_bytes(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::size_t kilobytes = 0;
  bool is_inside = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    if (const auto maps = os::parse_maps(line); !maps.empty()) is_inside = maps[0].overlaps(begin, begin + bytes);
    const bool is_count = line.starts_with("AnonHugePages:") || line.starts_with("ShmemPmdMapped:");
    if (!is_inside || !is_count) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    std::size_t count = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), count);
    kilobytes += count;
  }
  return kilobytes << 10U;
}

// Why a test of huge pages says nothing here; empty where the kernel gives them to private memory and to files in
// memory.
inline std::string why_no_huge_pages() {
  const PlacedMap memory(huge_page_bytes, 0);
  if (madvise(memory.data(), huge_page_bytes, MADV_HUGEPAGE) != 0) return "the kernel has no huge pages";
  memory.data()[0] = std::byte{1};
  if (huge_bytes(memory.data(), huge_page_bytes) == 0) return "the kernel gives private memory no huge pages";
  const int fd = memfd_create("farsum-test", MFD_CLOEXEC);
  const bool is_shared =
      fd >= 0 && ftruncate(fd, huge_page_bytes) == 0 &&
      mmap(memory.data(), huge_page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  close(fd);
  const bool is_given = is_shared && madvise(memory.data(), 1, MADV_POPULATE_WRITE) == 0 &&
                        madvise(memory.data(), huge_page_bytes, MADV_COLLAPSE) == 0;
  return is_given ? "" : "the kernel gives files in memory no huge pages";
}

}  // namespace farsum::test
