// How far the operations of a window towards one target are.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.hpp"

namespace farsum {

// What one window has under way towards one target, and how the last failure among it was answered.
struct Outstanding {
  std::atomic<std::uint64_t> count{0};
  // So many of these still need the program's buffers: operands that are neither copied nor sent, results that have not
  // come. A local flush waits for these only (acquire).
  std::atomic<std::uint32_t> borrowing{0};
  std::atomic<Code> failure{Code::ok};
  // Its operations may fail one by one: none travels in a message with others. Set before the first.
  bool goes_alone = false;
};

}  // namespace farsum
