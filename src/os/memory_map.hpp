// What kind of memory a stretch of this process's addresses is, asked of the kernel map by map, or read from
// /proc/self/maps. It only looks: it changes no map, and what it says is true for as long as no other thread maps or
// unmaps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/map_question.hpp"

namespace farsum::os {

enum class MemoryKind : std::uint8_t {
  unmapped,           // no byte is mapped
  partly_mapped,      // some bytes are mapped and some are not
  mixed,              // maps of several kinds
  heap,               // the break segment
  anonymous_private,  // mmap'ed privately: large malloc blocks, arenas of further threads
  anonymous_shared,   // MAP_SHARED | MAP_ANONYMOUS, System V segments
  static_data,        // data or bss of the program or of a library
  stack,              // of the program or of the calling thread
  file_private,       // MAP_PRIVATE of a file
  file_shared,        // MAP_SHARED of a file, of a memfd too
  huge_pages,         // MAP_HUGETLB or hugetlbfs; transparent huge pages are anonymous_private
  special,            // vdso, vsyscall, device memory
  read_only,          // mapped, and some of it may not be written
};

[[nodiscard]] std::string_view name_of(MemoryKind kind);

// One line of /proc/PID/maps.
struct Map {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::uint64_t file_offset = 0;
  std::uint64_t device = 0;  // as st_dev has it
  std::uint64_t inode = 0;
  std::string name;

  [[nodiscard]] std::size_t bytes() const { return end - begin; }
  [[nodiscard]] bool overlaps(std::uintptr_t from, std::uintptr_t to) const { return begin < to && from < end; }
};

// All maps of this process, in ascending order. Empty if /proc cannot be read.
[[nodiscard]] std::vector<Map> read_maps();

// The same from text, for tests.
[[nodiscard]] std::vector<Map> parse_maps(std::string_view text);

struct MappedRange {
  MemoryKind kind = MemoryKind::unmapped;
  bool readable = false;  // every byte
  bool writable = false;  // every byte
  std::vector<Map> maps;  // those that the range overlaps

  // One sentence part for error messages, such as "anonymous private memory, read and write, in 1 map".
  [[nodiscard]] std::string describe() const;
};

// The kind of [address, address + bytes). An empty range counts as the one byte at its address.
[[nodiscard]] MappedRange classify(const void* address, std::size_t bytes);
[[nodiscard]] MappedRange classify(const void* address, std::size_t bytes, const std::vector<Map>& maps);

// Asks for the maps of a range alone: one call for each from Linux 6.11 on, through a descriptor that is kept. Before,
// it reads the file. Any thread may call, a forked child too.
class MapReader {
 public:
  explicit MapReader(const MapCalls& calls = library_map_calls()) : calls_(calls) {}
  ~MapReader();
  MapReader(const MapReader&) = delete;
  MapReader& operator=(const MapReader&) = delete;

  enum class Names : std::uint8_t { left_out, asked };
  // Those that overlap [begin, end), in ascending order. Empty, too, if /proc cannot be read.
  [[nodiscard]] std::vector<Map> maps(std::uintptr_t begin, std::uintptr_t end, Names names) const;

  // What every byte of [address, address + bytes) may be.
  struct Access {
    bool readable = false;
    bool writable = false;
  };
  [[nodiscard]] Access access(const void* address, std::size_t bytes) const;
  // All of a range, cut where its bytes begin or cease to be mapped, readable or writable; none without /proc.
  struct Part {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool readable = false;
    bool writable = false;  // and readable
  };
  [[nodiscard]] std::vector<Part> parts(const void* address, std::size_t bytes) const;
  [[nodiscard]] MappedRange classify(const void* address, std::size_t bytes) const;

  // How often this object has asked for a map, and read the file. Relaxed: for tests.
  [[nodiscard]] std::uint64_t questions() const { return questions_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t readings() const { return readings_.load(std::memory_order_relaxed); }

 private:
  std::optional<int> descriptor() const;
  long ask(std::uintptr_t address, BareMap& map, std::span<char> name) const;
  void forget_kernel() const;
  std::optional<std::vector<Map>> ask_for_maps(std::uintptr_t begin, std::uintptr_t end, Names names) const;

  const MapCalls& calls_;
  // The descriptor and the process that opened it: in a forked child it still tells of the parent. Whoever opens one at
  // the same time as another closes his own.
  struct Opened {
    std::int32_t process = 0;
    std::int32_t fd = -1;
  };
  mutable std::atomic<Opened> opened_{Opened{}};
  mutable std::atomic<bool> is_unanswered_{false};  // by this kernel
  mutable std::atomic<std::uint64_t> questions_{0};
  mutable std::atomic<std::uint64_t> readings_{0};
};

// What /proc/self/smaps says of the maps that overlap the range, their VmFlags above all. The kernel walks the page
// tables of all maps up to the range, 20 to 40 ms for each GB in use, so ask only before something that costs more.
struct SpecialFlags {
  bool known = false;  // false if /proc/self/smaps cannot be read
  bool locked = false;
  bool huge_pages = false;
  bool fault_handled_by_user = false;  // userfaultfd
  bool left_out_of_fork = false;       // MADV_DONTFORK, MADV_WIPEONFORK
  bool device = false;                 // VM_IO, VM_PFNMAP
  bool grows_down = false;
  bool mergeable = false;  // MADV_MERGEABLE
  bool protection_key = false;
  bool wants_huge_pages = false;  // MADV_HUGEPAGE
  bool shuns_huge_pages = false;  // MADV_NOHUGEPAGE
  // What of these maps lies on transparent huge pages now.
  std::size_t transparent_huge_bytes = 0;
};
[[nodiscard]] SpecialFlags special_flags(const void* address, std::size_t bytes);
[[nodiscard]] SpecialFlags parse_special_flags(std::string_view smaps, std::uintptr_t begin, std::uintptr_t end);

}  // namespace farsum::os
