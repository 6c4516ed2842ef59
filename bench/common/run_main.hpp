// The end of a benchmark: what it throws becomes an exit code.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <exception>

#include <fmt/format.h>

namespace bench {

template <class Run>
int run_main(const char* name, Run&& run) {
  try {
    return run();
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}: {}\n", name, failure.what());
    std::fflush(nullptr);
    // Without unwinding into collective calls that the other ranks will not make; whoever started them ends them.
    _exit(1);
  }
}

}  // namespace bench
