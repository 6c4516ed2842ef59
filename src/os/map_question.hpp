// The kernel's answer about one map of a process (PROCMAP_QUERY, Linux 6.11), and its file of them, whose text older
// kernels have instead. Nothing here allocates or takes a lock: whoever runs in a forked child or while threads are
// held may ask. The calls to the kernel can be replaced, so that tests have another kernel or count them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace farsum::os {

// A map without its name.
struct BareMap {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  int protection = 0;  // PROT_
  bool shared = false;
  std::uint64_t page_bytes = 0;   // 0: unknown, as from the text
  std::uint64_t file_offset = 0;  // of a file only, as are the next two
  std::uint64_t device = 0;       // as st_dev has it
  std::uint64_t inode = 0;
};

// As in the kernel's linux/fs.h, which the C library of Debian 12 does not have.
struct MapQuestion {
  std::uint64_t size = sizeof(MapQuestion);
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t access = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t inode = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t build_id_bytes = 0;
  std::uint64_t name_address = 0;
  std::uint64_t build_id_address = 0;
};
static_assert(sizeof(MapQuestion) == 104);

// What is asked of the kernel. `open` gives a descriptor of /proc/PID/maps (0: this process), the others what their
// system call gives; all say a negated errno where they fail.
struct MapCalls {
  long (*open)(pid_t process) = nullptr;
  long (*close)(int fd) = nullptr;
  long (*ask)(int fd, MapQuestion* question) = nullptr;
  long (*read)(int fd, char* buffer, std::size_t bytes) = nullptr;
};
[[nodiscard]] const MapCalls& library_map_calls();
// Without the library, for HeldWork (promotion/held_threads.hpp).
[[nodiscard]] const MapCalls& kernel_map_calls();

// Asks about the map that holds `address`, or else the first one above. 0 with the answer, -ENOENT where there is none,
// another negated errno where the kernel does not answer. `name` may be empty; what it gets ends in a 0.
[[nodiscard]] long ask_for_map(const MapCalls& calls, int fd, std::uintptr_t address, BareMap& map,
                               std::span<char> name = {});

// For the text where a signal's stack may be all there is.
inline constexpr std::size_t small_maps_buffer_bytes = 1024;

// The maps of a process one after the other. A place in the text is lost where the walk goes backwards.
class MapWalk {
 public:
  // `buffer` is for the text.
  explicit MapWalk(std::span<char> buffer, const MapCalls& calls = library_map_calls(), pid_t process = 0);
  ~MapWalk();
  MapWalk(const MapWalk&) = delete;
  MapWalk& operator=(const MapWalk&) = delete;

  // Whether the maps can be asked for or read.
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  // The map that holds `address`, or else the first one above; `address` is no less than in the call before. False
  // where there is none, or no answer: see failed().
  [[nodiscard]] bool next(std::uintptr_t address, BareMap& map);
  [[nodiscard]] bool failed() const { return has_failed_; }

 private:
  bool take_line(BareMap& map);
  char peek();
  char take();
  std::uint64_t take_number(unsigned base);

  const MapCalls& calls_;
  std::span<char> buffer_;
  int fd_;
  bool by_text_ = false;
  bool has_failed_ = false;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  BareMap line_;  // the last one read
};

}  // namespace farsum::os
