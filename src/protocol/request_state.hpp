// What somebody who waits for one operation looks at.
#pragma once

#include <atomic>

#include "base/status.hpp"

namespace farsum {

// An operation that somebody waits for by name.
struct RequestState {
  std::atomic<bool> done{false};
  std::atomic<Code> code{Code::ok};
};

}  // namespace farsum
