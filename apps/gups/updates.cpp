#include "updates.hpp"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

namespace gups {

void Progress::show(std::uint64_t done) {
  // A terminal has one line rewritten; a file or a launcher's pipe gets a line of its own now and then.
  const bool terminal = isatty(STDERR_FILENO) != 0;
  fmt::print(stderr, "{}{}: {:3.0f} % of {} updates of rank 0{}", terminal ? "\r" : "", label_,
             100.0 * static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(total_, 1)), total_,
             terminal ? " " : "\n");
  std::fflush(stderr);
  next_ = std::chrono::steady_clock::now() + (terminal ? gap : 10 * gap);
  shown_ = terminal;
}

void Progress::finish() {
  if (shown_) fmt::print(stderr, "\r{:70}\r", "");
  shown_ = false;
}

}  // namespace gups
