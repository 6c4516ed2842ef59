// What a rank says of a call that it has entered, for others to compare.
#pragma once

#include <cstdint>

namespace farsum {

struct SaidOfCall {
  std::uint64_t what = 0;
  std::uint64_t count = 0;

  bool operator==(const SaidOfCall&) const = default;
};

}  // namespace farsum
