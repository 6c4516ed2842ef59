// Who waits for an operation.
#pragma once

#include <cstdint>

namespace farsum {

enum class Completion : std::uint8_t {
  implicit,    // whoever flushes, or ends the epoch
  blocking,    // the call itself
  by_request,  // whoever looks at the request
};

}  // namespace farsum
