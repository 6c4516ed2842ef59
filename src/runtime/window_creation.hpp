// What the files that make a window's parts share: a rank's own wish, and how a part is described to the others.
// Private to the component.
#pragma once

#include <cstring>
#include <string>

#include "runtime/context.hpp"

namespace farsum {

enum class Flavour : std::uint8_t { allocated, adopted, dynamic };

// An adopted part is an edge, a promoted stretch and an edge, or what lies around the node segment and stretches of it
// that differ in who may touch them; where there are more of those, the last is taken for one.
constexpr std::uint32_t most_adopted_regions = 16;

// A rank's own wish.
struct Context::Creation {
  Flavour flavour = Flavour::allocated;
  std::byte* memory = nullptr;  // adopted
  std::uint64_t bytes = 0;
  bool read_only = false;
  bool unsure = false;  // memory that need not be mapped, such as the whole address space
  Status refusal;       // what this rank finds wrong with its own part
};

inline void set_note(SharedRegion& region, const std::string& note) {
  std::strncpy(region.note, note.c_str(), sizeof region.note - 1);
}

}  // namespace farsum
