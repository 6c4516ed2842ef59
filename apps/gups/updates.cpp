#include "updates.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace gups {

void Progress::show(std::uint64_t done) {
  fmt::print(stderr, "\r{}: {:3.0f} % of {} updates of rank 0 ", label_,
             100.0 * static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(total_, 1)), total_);
  std::fflush(stderr);
  next_ = std::chrono::steady_clock::now() + gap;
  shown_ = true;
}

void Progress::finish() {
  if (shown_) fmt::print(stderr, "\r{:70}\r", "");
  shown_ = false;
}

}  // namespace gups
