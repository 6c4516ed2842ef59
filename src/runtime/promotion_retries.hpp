// When memory that could not be turned back is tried again: after so many frees of windows, twice as many each time
// that it fails. It turns nothing back itself.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farsum {

// Threads: the caller's order.
class PromotionRetries {
 public:
  static constexpr std::uint32_t most_frees_between = 256;

  // A window has been freed. True: now it is tried.
  bool is_due_after_free() {
    if (--frees_until_next_ != 0) return false;
    frees_until_next_ = frees_between_;
    return true;
  }
  // It was tried, and some could not be turned back even so.
  void failed() { begin(std::min(2 * frees_between_, most_frees_between)); }
  void succeeded() { begin(1); }

 private:
  void begin(std::uint32_t frees) { frees_until_next_ = frees_between_ = frees; }

  std::uint32_t frees_until_next_ = 1;
  std::uint32_t frees_between_ = 1;  // that were the last time
};

}  // namespace farsum
