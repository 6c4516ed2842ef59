// The kinds of memory that a window can expose, each made ready on one rank: what to expose, through which windows it
// is reached, and where a part begins in each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "farsum.h"

namespace farsum::test {

enum class MemoryOf {
  allocated,
  heap_small,
  heap_large,
  heap_kept_private,
  static_data,
  stack,
  anonymous_map,
  private_file,
  shared_file,
  another_window,
  overlapping_windows,
  dynamic,
  dynamic_in_touching_regions,
};

std::vector<MemoryOf> all_kinds_of_memory();
std::string name_of(MemoryOf kind);
// Bytes of a part: small heap blocks stay below malloc's threshold for maps.
std::size_t part_bytes(MemoryOf kind);

// A window through which the memory is reached, and by rank the offset at which the part begins in it.
struct View {
  farsum_window window{};
  std::vector<std::uint64_t> base;
};

// Collective over the world. Freed with the object, collectively.
class ExposedMemory {
 public:
  explicit ExposedMemory(MemoryOf kind);
  ~ExposedMemory();
  ExposedMemory(const ExposedMemory&) = delete;
  ExposedMemory& operator=(const ExposedMemory&) = delete;

  // This rank's part.
  std::byte* mine() const { return mine_; }
  const std::vector<View>& views() const { return views_; }

 private:
  struct Backing;
  void adopt(std::byte* memory, std::size_t bytes, std::uint64_t base, std::uint32_t promises = 0);
  std::byte* obtain(std::size_t bytes);

  MemoryOf kind_;
  std::unique_ptr<Backing> backing_;
  std::byte* mine_ = nullptr;
  std::vector<View> views_;
};

}  // namespace farsum::test
