// Which of a vector's bytes a member folds or copies, where all take an equal part of whole lines: no line is written
// by two. Pure. Owner: collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace farsum {

struct Stretch {
  std::size_t from;
  std::size_t bytes;
};

inline Stretch share_of_member(std::size_t bytes, std::uint32_t member, std::uint32_t members) {
  const std::size_t each = round_up((bytes + members - 1) / members, cache_line_bytes);
  const std::size_t from = std::min(member * each, bytes);
  return {from, std::min(each, bytes - from)};
}

}  // namespace farsum
