// How a rank ends that cannot go on.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>

namespace bench {

// Without unwinding into collective calls that the other ranks will not make; whoever started them ends them.
[[noreturn]] inline void end_rank(const std::string& what) {
  fmt::print(stderr, "rank: {}\n", what);
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace bench
